// SPDX-License-Identifier: Apache-2.0

package handoff_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/durable/durabletest"
)

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// births are the ways to a hand-over, which are cut everywhere below.
func births(t testing.TB, s *snapshot.Snapshot) map[string]map[string]string {
	return map[string]map[string]string{
		"embedded": {},
		"emptied":  {handoff.CurrentPath: string(emptied(t, s))},
		"damaged":  {snapshot.Path: strings.Replace(string(s.Bytes()), "value%201", "value%209", 1)},
		"missing":  {snapshot.Path: ""},
	}
}

// Field cases 86, 88, 95, 98: the power is cut before and after every change of the disk, with each kind of loss a disk may
// have. The next boot's end state is, byte for byte, that of a boot that was not cut.
func TestPowerCutAnywhere(t *testing.T) {
	s := sealed(t, "1", 3)
	for birth, files := range births(t, s) {
		t.Run(birth, func(t *testing.T) {
			whole := &durabletest.Disk{}
			dir := born(t, s, files)
			if _, err := handoff.Run(t.Context(), options(open(t, dir, whole), server(2, s))); err != nil {
				t.Fatal(err)
			}
			want, cuts := tree(t, dir), 0
			for step := range len(whole.Steps()) {
				for _, done := range []bool{false, true} {
					for _, loss := range durabletest.Losses {
						disk := &durabletest.Disk{FailAt: step + 1, Done: done, Dead: true}
						dir := born(t, s, files)
						outcome, err := handoff.Run(t.Context(), options(open(t, dir, disk), server(2, s)))
						if err == nil {
							t.Fatalf("cut at %q: told %+v", whole.Steps()[step], outcome)
						}
						disk.PowerCut(loss)
						if _, err := handoff.Run(t.Context(), options(open(t, dir, nil), server(2, s))); err != nil {
							t.Fatalf("cut at step %d (done %v, loss %v), booted again: %v", step+1, done, loss, err)
						}
						if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
							t.Fatalf("cut at step %d, %q (done %v, loss %v):\n%s", step+1, whole.Steps()[step], done, loss, diff)
						}
						cuts++
					}
				}
			}
			t.Logf("bench: %s: %d steps, %d power cuts, one end state", birth, len(whole.Steps()), cuts)
		})
	}
}

// A disk that is full or read-only at any step: the run fails with the machine's error, and the next one succeeds.
func TestDiskErrorsAnywhere(t *testing.T) {
	s := sealed(t, "1", 3)
	whole := &durabletest.Disk{}
	if _, err := handoff.Run(t.Context(), options(open(t, born(t, s, births(t, s)["damaged"]), whole), server(2, s))); err != nil {
		t.Fatal(err)
	}
	for step := range len(whole.Steps()) {
		disk := &durabletest.Disk{FailAt: step + 1, Err: syscall.ENOSPC}
		dir := born(t, s, births(t, s)["damaged"])
		_, err := handoff.Run(t.Context(), options(open(t, dir, disk), server(2, s)))
		if _, is := errors.AsType[*handoff.MachineError](err); !is || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("no space at %q: got %v", whole.Steps()[step], err)
		}
		if _, err := handoff.Run(t.Context(), options(open(t, dir, nil), server(2, s))); err != nil {
			t.Errorf("after no space at %q: %v", whole.Steps()[step], err)
		}
		checkHandedOver(t, dir, s)
	}
}

// SIGKILL at every state, in a process of its own.
func TestKilledInAnyState(t *testing.T) {
	s := sealed(t, "1", 3)
	if at := os.Getenv("MCSNAP_KILL_AT"); at != "" {
		killedAt(t, s, at)
		return
	}
	for birth, files := range births(t, s) {
		dir := born(t, s, files)
		if _, err := handoff.Run(t.Context(), options(open(t, dir, nil), server(2, s))); err != nil {
			t.Fatal(err)
		}
		want, kills := tree(t, dir), 0
		for state := 1; ; state++ {
			dir := born(t, s, files)
			cmd := exec.Command(os.Args[0], "-test.run=^TestKilledInAnyState$")
			cmd.Env = append(os.Environ(), "MCSNAP_KILL_AT="+strconv.Itoa(state), "MCSNAP_KILL_ROOT="+dir)
			out, err := cmd.CombinedOutput()
			if err == nil {
				break // it ended before that state
			}
			if exit, is := errors.AsType[*exec.ExitError](err); !is || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("%v\n%s", err, out)
			}
			kills++
			if _, err := handoff.Run(t.Context(), options(open(t, dir, nil), server(2, s))); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
				t.Errorf("%s, killed before state %d:\n%s", birth, state, diff)
			}
		}
		t.Logf("bench: %s: killed in %d states, one end state", birth, kills)
		if kills < 6 {
			t.Errorf("%s: only %d states were killed", birth, kills)
		}
	}
}

func killedAt(t *testing.T, s *snapshot.Snapshot, at string) {
	n, err := strconv.Atoi(at)
	if err != nil {
		t.Fatal(err)
	}
	entered := 0
	handoff.OnState(func() {
		if entered++; entered == n {
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				panic(fmt.Sprint("kill: ", err))
			}
			select {}
		}
	})
	if _, err := handoff.Run(t.Context(), options(open(t, os.Getenv("MCSNAP_KILL_ROOT"), nil), server(2, s))); err != nil {
		t.Fatal(err)
	}
}
