// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/durable"
	"github.com/mcsnap/mcsnap/snapshot/durable/durabletest"
	"github.com/mcsnap/mcsnap/snapshot/store"
	"github.com/mcsnap/mcsnap/snapshot/store/storetest"
)

// script is a store's life in small: each step can be the one at which it ends. acknowledged is told what has returned.
func script(ctx context.Context, d *store.Dir, snapshots []*snapshot.Snapshot, acknowledged func(step string)) error {
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"put a", func() error { return d.Put(ctx, snapshots[0]) }},
		{"select a", func() error { return d.Select(ctx, "x", snapshots[0].Digest()) }},
		{"put b", func() error { return d.Put(ctx, snapshots[1]) }},
		{"select b", func() error { return d.Select(ctx, "x", snapshots[1].Digest()) }},
		{"serve b", func() error { return d.MarkServed(ctx, snapshots[1].Digest(), at) }},
		{"put a again", func() error { return d.Put(ctx, snapshots[0]) }},
		{"delete a", func() error { return d.Delete(ctx, snapshots[0].Digest()) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		acknowledged(step.name)
	}
	return nil
}

func pair(t testing.TB) []*snapshot.Snapshot {
	return []*snapshot.Snapshot{storetest.Sealed(t, "rendered-x", "x", "a"), storetest.Sealed(t, "rendered-x", "x", "b")}
}

// survived checks the whole store against what was acknowledged: nothing of it is lost, whatever is there is whole.
func survived(t *testing.T, dir string, snapshots []*snapshot.Snapshot, done map[string]bool) {
	t.Helper()
	d, err := store.OpenDirOn(&durabletest.Disk{}, dir, quiet) // no cut follows, so no disk needs to be waited for
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close() //nolint:errcheck // only read
	a, b := snapshots[0], snapshots[1]
	for _, c := range []struct {
		s    *snapshot.Snapshot
		must bool
	}{{a, done["put a"] && !done["put a again"]}, {b, done["put b"]}} {
		got, err := d.Get(t.Context(), c.s.Digest())
		switch {
		case err == nil && !bytes.Equal(got.Bytes(), c.s.Bytes()):
			t.Errorf("%s is another one", c.s.Digest())
		case errors.Is(err, store.ErrNotFound) && c.must:
			t.Errorf("%s was acknowledged and is lost", c.s.Digest())
		case err != nil && !errors.Is(err, store.ErrNotFound):
			t.Errorf("%s: %v", c.s.Digest(), err)
		}
	}
	selected, err := d.Selected(t.Context(), "x")
	switch {
	case done["select b"] && selected != b.Digest():
		t.Errorf("selected %q, %v, want b", selected, err)
	case done["select a"] && !done["put b"] && selected != a.Digest() && selected != b.Digest():
		t.Errorf("selected %q, %v, want a", selected, err)
	}
	all, err := d.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Digest == b.Digest() && done["serve b"] && e.ServedAt.IsZero() {
			t.Error("b was served, which is forgotten")
		}
		if e.Digest == a.Digest() && done["delete a"] {
			t.Error("a was deleted and is there again")
		}
	}
	if err := script(t.Context(), d, snapshots, func(string) {}); err != nil {
		t.Errorf("the store does not go on: %v", err)
	}
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && durable.IsTemporary(entry.Name()) {
			t.Errorf("%s is left", path)
		}
		return nil
	})
}

// The power fails at each step, the step done or not, and the disk keeps any part of what was not synced: what was
// acknowledged is there, the rest is whole or not there.
func TestPowerCutAtEveryStep(t *testing.T) {
	snapshots := pair(t)
	for step := 1; ; step++ {
		var ended error
		for _, done := range []bool{false, true} {
			for _, loss := range durabletest.Losses {
				dir := t.TempDir()
				disk := &durabletest.Disk{FailAt: step, Done: done, Dead: true}
				acknowledged := map[string]bool{}
				d, err := store.OpenDirOn(disk, dir, quiet)
				if err == nil {
					err = script(t.Context(), d, snapshots, func(name string) { acknowledged[name] = true })
					_ = d.Close()
				}
				ended = err
				disk.PowerCut(loss)
				survived(t, dir, snapshots, acknowledged)
				if t.Failed() {
					t.Fatalf("step %d (%v), done %v, loss %d: %v", step, disk.Steps()[min(step, len(disk.Steps()))-1], done, loss, err)
				}
			}
		}
		if ended == nil {
			t.Logf("%d steps", step-1)
			return
		}
	}
}

// Fault pairs: a step fails and has taken place, or fails and has not; the process lives on. The same call again
// succeeds, and nothing that was there before is hurt.
func TestFaultPairs(t *testing.T) {
	snapshots := pair(t)
	for _, fault := range []error{syscall.ENOSPC, syscall.EIO} {
		for _, done := range []bool{false, true} {
			for step := 1; ; step++ {
				dir := t.TempDir()
				d := open(t, dir)
				if err := d.Put(t.Context(), snapshots[0]); err != nil {
					t.Fatal(err)
				}
				_ = d.Close()
				disk := &durabletest.Disk{FailAt: step, Done: done, Err: fault}
				faulty, err := store.OpenDirOn(disk, dir, quiet)
				if err != nil {
					t.Fatalf("a store that is there opens: %v", err)
				}
				err = faulty.Put(t.Context(), snapshots[1])
				if got, err := faulty.Get(t.Context(), snapshots[0].Digest()); err != nil || got.Digest() != snapshots[0].Digest() {
					t.Errorf("%v at step %d: what was there is not: %v", fault, step, err)
				}
				if err != nil && !errors.Is(err, fault) {
					t.Errorf("%v at step %d is reported as %v", fault, step, err)
				}
				if err != nil {
					err = faulty.Put(t.Context(), snapshots[1])
				}
				if err != nil {
					t.Errorf("%v at step %d: once more: %v", fault, step, err)
				}
				_ = faulty.Close()
				survived(t, dir, snapshots, map[string]bool{"put a": true, "put b": true})
				if len(disk.Steps()) < step {
					break
				}
			}
		}
	}
}

// Held serves what the disk does not take, says so once, and stores it as soon as it can, in order.
func TestHeld(t *testing.T) {
	snapshots := pair(t)
	dir := t.TempDir()
	var log bytes.Buffer
	disk := &durabletest.Disk{FailAt: 1 << 30, Err: syscall.ENOSPC}
	d, err := store.OpenDirOn(disk, dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	h := store.Hold(d, int64(len(snapshots[0].MachineConfig())+len(snapshots[1].MachineConfig())), textLog(&log))
	disk.FailAt, disk.Dead = len(disk.Steps())+1, true
	for _, s := range []*snapshot.Snapshot{snapshots[0], snapshots[1], snapshots[0]} {
		if err := h.Put(t.Context(), s); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("Put = %v", err)
		} else if _, is := errors.AsType[*store.HeldError](err); !is {
			t.Fatalf("Put = %v, want a HeldError", err)
		}
	}
	over := h.Put(t.Context(), storetest.Sealed(t, "rendered-y", "y", "more"))
	if _, is := errors.AsType[*store.HeldError](over); is || over == nil {
		t.Errorf("beyond the limit: %v", over)
	}
	for _, s := range snapshots {
		if got, err := h.Get(t.Context(), s.Digest()); err != nil || got.Digest() != s.Digest() {
			t.Errorf("Get = %v", err)
		}
	}
	if got, err := h.Digests(t.Context(), "rendered-x"); err != nil || len(got) != 2 || got[0] != snapshots[1].Digest() {
		t.Errorf("Digests = %v, %v", got, err)
	}
	if problem, held := h.Problem(); problem == "" || held != 2 {
		t.Errorf("Problem = %q, %d", problem, held)
	}
	if lines := bytes.Count(log.Bytes(), []byte("\n")); lines != 1 {
		t.Errorf("%d lines in the log, want 1:\n%s", lines, log.String())
	}
	disk.Dead = false
	h.Flush(t.Context())
	if problem, held := h.Problem(); problem != "" || held != 0 {
		t.Errorf("Problem = %q, %d, want none", problem, held)
	}
	survived(t, dir, snapshots, map[string]bool{"put a": true, "put b": true})
}
