// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/durable"
	"github.com/mcsnap/mcsnap/snapshot/durable/durabletest"
)

// manager is systemd's manager of a node that is cut and booted again: it keeps what is enabled.
type manager struct {
	enabled map[string]bool
	fail    string // the unit whose preset fails
}

func (m *manager) State(_ context.Context, unit string) (string, error) {
	if m.enabled[unit] {
		return "enabled", nil
	}
	return "disabled", nil
}
func (m *manager) Enable(_ context.Context, unit string) error  { m.enabled[unit] = true; return nil }
func (m *manager) Disable(_ context.Context, unit string) error { delete(m.enabled, unit); return nil }
func (m *manager) Reload(context.Context) error                 { return nil }
func (m *manager) Preset(_ context.Context, unit string) error {
	if unit == m.fail {
		return errors.New("the unit file is broken")
	}
	if strings.HasPrefix(unit, "on-") {
		m.enabled[unit] = true
	}
	return nil
}

// before and after are two configs with a bit of everything between them.
func before(t testing.TB) *snapshot.Snapshot {
	return config{
		files: []string{fileJSON("/etc/a", "1"), fileJSON("/etc/gone/x", "1"), fileJSON("/etc/motd1", "ours"),
			fileJSON("/etc/turn", "1"), fileJSON("/etc/back/deep/x", "1"), fileJSON("/etc/back/y", "1")},
		units: []string{unitJSON("on-gone.service", service("a"), on)},
		keys:  []string{`"ssh-ed25519 A a"`},
	}.seal(t, "1")
}

func after(t testing.TB) *snapshot.Snapshot {
	return config{
		files: []string{fileJSON("/etc/a", "2"), fileJSON("/etc/new/deep/b", "1"), fileJSON("/etc/motd", "ours"),
			fileJSON("/etc/turn/deep/x", "1"), fileJSON("/etc/turn/y", "1"), fileJSON("/etc/back", "1")},
		units: []string{unitJSON("on-new.service", service("b"), on)},
	}.seal(t, "2")
}

// grown is a node at the config before, without the real Ignition: an update from an empty config made it.
func grown(t testing.TB) (dir string, enabled map[string]bool) {
	t.Helper()
	dir, m := image(t), &manager{enabled: map[string]bool{}}
	u := node(t, dir, config{}.seal(t, "0"), nil)
	u.Units = m
	if _, err := u.Update(t.Context(), before(t)); err != nil {
		t.Fatal(err)
	}
	return dir, m.enabled
}

func with(t testing.TB, dir string, files durable.FS, m *manager) *Updater {
	u := updater(t, dir, files)
	u.Units = m
	return u
}

// boot opens the node as the daemon does when it starts, which finishes what was cut, and updates it.
func boot(t testing.TB, u *Updater, to *snapshot.Snapshot) error {
	t.Helper()
	_, closeNode, err := u.Open(t.Context())
	if err != nil {
		return err
	}
	defer closeNode()
	_, err = u.Update(t.Context(), to)
	return err
}

// all is the tree with the daemon's own files, the originals included, and what is enabled.
func all(t testing.TB, dir string, m *manager) map[string]string {
	t.Helper()
	files := tree(t, dir)
	for _, name := range []string{currentPath, "/etc/machine-config-daemon/currentconfig"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	for _, folder := range []string{Dir, updateDir, originalsDir, blobsDir} {
		entries, err := os.ReadDir(filepath.Join(dir, folder))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if entry.Name() != "blobs" { // the empty folder of an update that ended
				files[filepath.Join(folder, entry.Name())] = "there"
			}
		}
	}
	for unit := range m.enabled {
		files["enabled "+unit] = "yes"
	}
	return files
}

// The power is cut at every step of the disk, before it or after it, and whatever the disk lost, the next start ends in the tree
// of an update that was not cut.
func TestUpdateIsCutAnywhere(t *testing.T) {
	to := after(t)
	dir, enabled := grown(t)
	whole, m := &durabletest.Disk{}, &manager{enabled: maps.Clone(enabled)}
	if err := boot(t, with(t, dir, whole, m), to); err != nil {
		t.Fatal(err)
	}
	want, steps, cuts := all(t, dir, m), whole.Steps(), 0
	for step := range steps {
		done := step%3 == 0 // a file is written in 7 or 8 steps, and so each kind of them is cut on both sides
		loss := durabletest.Losses[step/3%len(durabletest.Losses)]
		dir, enabled := grown(t)
		m := &manager{enabled: enabled}
		disk := &durabletest.Disk{FailAt: step + 1, Done: done, Dead: true}
		if err := boot(t, with(t, dir, disk, m), to); err == nil {
			t.Fatalf("cut at %q and told as done", steps[step])
		}
		disk.PowerCut(loss)
		if err := boot(t, with(t, dir, nil, m), to); err != nil {
			t.Fatalf("cut at %q (done %v, loss %v): %v", steps[step], done, loss, err)
		}
		if diff := cmp.Diff(want, all(t, dir, m)); diff != "" {
			t.Fatalf("cut at %q (done %v, loss %v) (-whole +cut):\n%s", steps[step], done, loss, diff)
		}
		cuts++
	}
	t.Logf("bench: an update of %d disk steps, %d power cuts, one end state", len(steps), cuts)
}

// A disk that fails at any one step, and goes on working: the node is at the old config or at the new one, whole, and says
// which; nothing is left half-done, and the next try succeeds.
func TestUpdateFailsAnywhere(t *testing.T) {
	to := after(t)
	dir, enabled := grown(t)
	atOld := all(t, dir, &manager{enabled: enabled})
	whole, m := &durabletest.Disk{}, &manager{enabled: maps.Clone(enabled)}
	if err := boot(t, with(t, dir, whole, m), to); err != nil {
		t.Fatal(err)
	}
	atNew := all(t, dir, m)
	taken := 0
	for step := 0; step < len(whole.Steps()); step += 5 { // a fifth of the steps has every kind of them
		dir, enabled := grown(t)
		m := &manager{enabled: enabled}
		err := boot(t, with(t, dir, &durabletest.Disk{FailAt: step + 1, Err: syscall.ENOSPC}, m), to)
		if _, failed := errors.AsType[*FailedError](err); failed {
			taken++
			if diff := cmp.Diff(atOld, all(t, dir, m)); diff != "" {
				t.Errorf("no space at %q: not taken back (-old +is):\n%s", whole.Steps()[step], diff)
			}
		}
		if err := boot(t, with(t, dir, nil, m), to); err != nil {
			t.Errorf("after no space at %q: %v", whole.Steps()[step], err)
		}
		if diff := cmp.Diff(atNew, all(t, dir, m)); diff != "" {
			t.Errorf("after no space at %q (-new +is):\n%s", whole.Steps()[step], diff)
		}
	}
	t.Logf("bench: an update failed at every fifth of %d steps, %d were taken back after their first change", len(whole.Steps()), taken)
	if taken < 5 {
		t.Errorf("only %d failures came after the first change", taken)
	}
}

// A unit that cannot be enabled is the last thing to fail: all is taken back, and the daemon says so.
func TestUpdateIsTakenBack(t *testing.T) {
	dir, enabled := grown(t)
	want := all(t, dir, &manager{enabled: enabled})
	m := &manager{enabled: maps.Clone(enabled), fail: "on-new.service"}
	err := boot(t, with(t, dir, nil, m), after(t))
	if failed, is := errors.AsType[*FailedError](err); !is || !strings.Contains(failed.Error(), "was taken back: the unit file is broken") {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff(want, all(t, dir, m)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if s, err := with(t, dir, nil, m).Current(); err != nil || s.Digest() != before(t).Digest() {
		t.Errorf("the node's config is %v, %v", s, err)
	}
}

// kill -9 at every step of an update, and of taking one back, in a process of its own.
func TestUpdateIsKilledAnywhere(t *testing.T) {
	if at := os.Getenv("MCSNAP_KILL_AT"); at != "" {
		killedAt(t, at)
		return
	}
	for _, fail := range []string{"", "on-new.service"} {
		dir, enabled := grown(t)
		m := &manager{enabled: maps.Clone(enabled), fail: fail}
		if err := boot(t, with(t, dir, nil, m), after(t)); (err == nil) != (fail == "") {
			t.Fatal(err)
		}
		want, kills := tree(t, dir), 0
		for at := 1; ; at++ {
			dir, enabled := grown(t)
			cmd := exec.Command(os.Args[0], "-test.run=^TestUpdateIsKilledAnywhere$")
			cmd.Env = append(os.Environ(), "MCSNAP_KILL_AT="+strconv.Itoa(at), "MCSNAP_KILL_ROOT="+dir, "MCSNAP_KILL_FAIL="+fail)
			out, err := cmd.CombinedOutput()
			if err == nil {
				break
			}
			if exit, is := errors.AsType[*exec.ExitError](err); !is || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("%v\n%s", err, out)
			}
			kills++
			m := &manager{enabled: enabled, fail: fail}
			if err := boot(t, with(t, dir, nil, m), after(t)); (err == nil) != (fail == "") {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
				t.Errorf("killed at step %d (-want +is):\n%s", at, diff)
			}
		}
		t.Logf("bench: killed at %d steps, one end state", kills)
	}
}

func killedAt(t *testing.T, at string) {
	n, err := strconv.Atoi(at)
	if err != nil {
		t.Fatal(err)
	}
	step = func() {
		if n--; n == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	m := &manager{enabled: map[string]bool{"on-gone.service": true}, fail: os.Getenv("MCSNAP_KILL_FAIL")}
	_ = boot(t, with(t, os.Getenv("MCSNAP_KILL_ROOT"), nil, m), after(t))
}
