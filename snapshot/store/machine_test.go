// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mcsnap/mcsnap/snapshot/durable/durabletest"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

func textLog(into *bytes.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(into, nil)) }

// The test binary is also the process that gets killed, and the one that has a small disk of its own.
func TestMain(m *testing.M) {
	switch os.Getenv("STORE_TEST_ROLE") {
	case "killed":
		killed()
	case "small disk":
		smallDisk()
	default:
		os.Exit(m.Run())
	}
}

func again(t *testing.T, role, dir string, more ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), "STORE_TEST_ROLE="+role, "STORE_TEST_DIR="+dir), more...)
	cmd.Stderr = os.Stderr
	return cmd
}

func killed() {
	at, _ := strconv.Atoi(os.Getenv("STORE_TEST_STEP"))
	disk := &durabletest.Disk{Before: func(step int, _ string) {
		if step == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}}
	d, err := store.OpenDirOn(disk, os.Getenv("STORE_TEST_DIR"), quiet)
	if err == nil {
		err = script(mainTest{}.Context(), d, pair(mainTest{}), func(name string) { fmt.Println(name) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("all of it")
}

// kill -9 at every step of a real process: what it acknowledged on its standard output is in the store.
func TestKillAtEveryStep(t *testing.T) {
	snapshots := pair(t)
	for step := 1; ; step++ {
		dir := t.TempDir()
		out, err := again(t, "killed", dir, "STORE_TEST_STEP="+strconv.Itoa(step)).Output()
		acknowledged := map[string]bool{}
		for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
			acknowledged[lines.Text()] = true
		}
		survived(t, dir, snapshots, acknowledged)
		if t.Failed() {
			t.Fatalf("killed at step %d", step)
		}
		if acknowledged["all of it"] {
			t.Logf("killed at %d steps", step-1)
			return
		}
		if exit, is := errors.AsType[*exec.ExitError](err); !is || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("step %d: ended with %v, want by SIGKILL", step, err)
		}
	}
}

// smallDisk mounts a file system of 64 KiB, fills it, frees it, and makes it read-only.
func smallDisk() {
	dir := os.Getenv("STORE_TEST_DIR")
	t := mainTest{}
	check := func(err error, doing string) {
		if err != nil {
			t.Fatal(doing+":", err)
		}
	}
	check(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""), "own mounts")
	check(syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"), "mount a small disk")
	snapshots := pair(t)
	d, err := store.OpenDir(dir, quiet)
	check(err, "open")
	check(d.Put(t.Context(), snapshots[0]), "put while there is room")

	stuffing := filepath.Join(dir, "stuffing")
	if err := os.WriteFile(stuffing, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal("the disk is not full:", err)
	}
	h := store.Hold(d, 1<<20, quiet)
	for name, err := range map[string]error{
		"put": h.Put(t.Context(), snapshots[1]), "select": h.Select(t.Context(), "x", snapshots[0].Digest()),
	} {
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(name, "on a full disk:", err)
		}
	}
	for _, s := range snapshots {
		_, err := h.Get(t.Context(), s.Digest())
		check(err, "get with a full disk")
	}
	check(os.Remove(stuffing), "make room")
	h.Flush(t.Context())
	if problem, held := h.Problem(); problem != "" || held != 0 {
		t.Fatal("with room again:", problem, held)
	}
	_, err = d.Get(t.Context(), snapshots[1].Digest())
	check(err, "get what was kept in memory, from the disk")
	_ = d.Close()

	check(syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""), "make it read-only")
	d, err = store.OpenDir(dir, quiet)
	check(err, "open a read-only store")
	for _, s := range snapshots {
		_, err := d.Get(t.Context(), s.Digest())
		check(err, "get from a read-only store")
	}
	if err := d.Select(t.Context(), "x", snapshots[0].Digest()); !errors.Is(err, syscall.EROFS) {
		t.Fatal("select in a read-only store:", err)
	}
	fmt.Println("as told")
}

// A real full disk and a real read-only one.
func TestSmallDisk(t *testing.T) {
	cmd := again(t, "small disk", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	}
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "as told") {
		t.Fatalf("%v: %s", err, out)
	}
}

// The folder's owner changed under the server: what cannot be read is an error and not "not found", which would be
// taken for a reason to serve something else; and nothing is put aside as damaged.
func TestPermissionLost(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	snapshots := pair(t)
	if err := d.Put(t.Context(), snapshots[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "blobs"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(dir, "blobs"), 0o700) //nolint:errcheck // for the clean-up
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and end with this goroutine: the thread is no longer root's
		if os.Getuid() == 0 {
			if err := syscall.Setfsuid(65534); err != nil {
				t.Error(err)
			}
		}
		_, get := d.Get(t.Context(), snapshots[0].Digest())
		_, names := d.Digests(t.Context(), "rendered-x")
		for name, err := range map[string]error{
			"Get": get, "Digests": names, "Put": d.Put(t.Context(), snapshots[1]), "Select": d.Select(t.Context(), "x", snapshots[0].Digest()),
		} {
			if !errors.Is(err, fs.ErrPermission) || errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s = %v, want a permission error", name, err)
			}
		}
	}()
	<-done
	if err := os.Chmod(filepath.Join(dir, "blobs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get(t.Context(), snapshots[0].Digest()); err != nil {
		t.Errorf("with permission again: %v", err)
	}
	if aside, err := d.Damaged(); err != nil || len(aside) != 0 {
		t.Errorf("put aside: %v, %v", aside, err)
	}
}
