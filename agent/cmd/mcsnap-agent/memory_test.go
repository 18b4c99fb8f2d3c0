// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

const maxMemory = 12 << 10 // KiB

// The hand-over of a config of OpenShift's size needs no more than 12 MB.
func TestHandOverNeedsLittleMemory(t *testing.T) {
	s := rendered(t)
	least := 1 << 30
	for range 5 {
		least = min(least, peak(t, agent, "firstboot", "--root", born(t, s, nil)))
	}
	t.Logf("bench: hand-over of %d bytes: %.1f MB of memory at its peak", len(s.Bytes()), float64(least)/1024)
	if least > maxMemory {
		t.Errorf("the hand-over took %d KiB of memory, the limit is %d", least, maxMemory)
	}
}

// peak runs a program and returns the most memory it had resident, in KiB. The kernel's usage of a process that has ended
// begins with that of the test which forked it; what /proc says is the program's own, and is read as it is about to exit.
func peak(t *testing.T, args ...string) int {
	t.Helper()
	runtime.LockOSThread() // the tracer is a thread
	defer runtime.UnlockOSThread()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid, kib := cmd.Process.Pid, 0
	var status syscall.WaitStatus
	wait := func() {
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	wait() // stopped at its start
	if err := syscall.PtraceSetOptions(pid, syscall.PTRACE_O_TRACEEXIT); err != nil {
		t.Fatal(err)
	}
	for signal := 0; !status.Exited() && !status.Signaled(); wait() {
		switch {
		case status.TrapCause() == syscall.PTRACE_EVENT_EXIT:
			kib = highWater(t, pid)
		case status.Stopped() && status.StopSignal() != syscall.SIGTRAP:
			signal = int(status.StopSignal())
		}
		if err := syscall.PtraceCont(pid, signal); err != nil {
			t.Fatal(err)
		}
		signal = 0
	}
	if status.ExitStatus() != 0 || kib == 0 {
		t.Fatalf("%v ended with %v, %d KiB", args, status.ExitStatus(), kib)
	}
	return kib
}

func highWater(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "VmHWM:"); found {
			var kib int
			if _, err := fmt.Sscan(value, &kib); err != nil {
				t.Fatal(err)
			}
			return kib
		}
	}
	t.Fatalf("no VmHWM in\n%s", text)
	return 0
}
