// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/snapshot"
)

// born is a node on which the first-boot agent has handed over a config with one overlaid file.
func born(t *testing.T) (u *Updater, s *snapshot.Snapshot) {
	t.Helper()
	dir := image(t)
	sum := sha256.Sum256([]byte("rotated"))
	s = config{files: []string{fileJSON("/etc/a", "1"), fileJSON("/etc/ca", "rendered")}}.seal(t, "1").
		WithOverlays([]snapshot.Overlay{{Path: "/etc/ca", Reason: "controllerconfig", SHA256: hex.EncodeToString(sum[:])}})
	write(t, dir, "etc/a", "1")
	write(t, dir, "etc/ca", "rotated")
	write(t, dir, handoff.AnnotationsPath, fmt.Sprintf(`{"machineconfiguration.openshift.io/currentConfig":%q,"mcsnap/birth-snapshot":%q}`, s.Name(), s.Digest()))
	u = node(t, dir, s, nil)
	u.Units = &manager{enabled: map[string]bool{}}
	if _, err := handoff.Run(t.Context(), handoff.Options{Node: u.Node}); err != nil {
		t.Fatal(err)
	}
	return u, s
}

// start is what a daemon does first, and once it has told its state.
func start(t *testing.T, u *Updater) {
	t.Helper()
	_, closeNode, err := u.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closeNode()
	if there, err := u.Node.Exists(handoff.AnnotationsPath); err == nil && there {
		if err := u.Node.Rename(handoff.AnnotationsPath, handoff.BootstrappedPath); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever of the node's three copies of its config is damaged or lost, while the daemon runs or before it starts, the node
// is known to be at its config as long as one copy and its digest are left, overlays included; and the copies come back.
func TestCopiesAreLost(t *testing.T) {
	flip := func(u *Updater, name string) error {
		path := filepath.Join(u.Node.Dir(), name)
		text, err := os.ReadFile(path)
		return errors.Join(err, os.WriteFile(path, []byte(strings.Replace(string(text), "data:,1", "data:,2", 1)), 0o600))
	}
	lose := func(u *Updater, name string) error { return os.Remove(filepath.Join(u.Node.Dir(), name)) }
	empty := func(u *Updater, name string) error { return os.Truncate(filepath.Join(u.Node.Dir(), name), 0) }
	hurts := map[string]func(*Updater, string) error{"flipped": flip, "lost": lose, "emptied": empty}
	for _, when := range []string{"before the first start", "later"} {
		for hurt, do := range hurts {
			for _, names := range [][]string{{snapshot.Path}, {currentPath}, {handoff.CurrentPath}, {snapshot.Path, currentPath}} {
				if when != "later" && strings.Contains(strings.Join(names, " "), currentPath) {
					continue // it is not there yet
				}
				t.Run(fmt.Sprint(when, " ", hurt, " ", names), func(t *testing.T) {
					u, s := born(t)
					if when == "later" {
						start(t, u)
						if drift, err := u.Drift(t.Context()); err != nil || len(drift) > 0 {
							t.Fatal(drift, err)
						}
					}
					for _, name := range names {
						if err := do(u, name); err != nil {
							t.Fatal(err)
						}
					}
					start(t, u)
					current, err := u.Current()
					if err != nil || current.Digest() != s.Digest() {
						t.Fatalf("the node is at %v, %v", current, err)
					}
					if err := u.Restore(current); err != nil {
						t.Fatal(err)
					}
					for _, name := range []string{snapshot.Path, currentPath} {
						back, _, err := u.open(name)
						if err != nil || back.Digest() != s.Digest() || len(back.Overlays()) != 1 {
							t.Errorf("%s is not back: %v, %v", name, back, err)
						}
					}
					if drift, err := u.Drift(t.Context()); err != nil || len(drift) > 0 {
						t.Errorf("drift: %v, %v", drift, err)
					}
				})
			}
		}
	}
}

// With every copy lost the node says which file is missing, the digest wanted and the remedy, and is at its config again
// when a server gives it back, overlays included, or when somebody puts the file back.
func TestEveryCopyIsLost(t *testing.T) {
	for _, when := range []string{"before the first start", "later"} {
		u, s := born(t)
		names := []string{snapshot.Path, handoff.CurrentPath}
		if when == "later" {
			start(t, u)
			names = append(names, currentPath)
		}
		for _, name := range names {
			if err := u.Node.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		start(t, u)
		_, err := u.Current()
		lost, is := errors.AsType[*LostError](err)
		if !is || lost.Digest != s.Digest() {
			t.Fatalf("%s: got %v, want it lost with its digest", when, err)
		}
		for _, says := range []string{snapshot.Path + ": missing", "digest wanted: " + string(s.Digest()), "put that file back, or run mcsnap-agent doctor"} {
			if !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %q does not say %q in one line", when, err, says)
			}
		}
		away := func(context.Context, snapshot.Digest) (*snapshot.Snapshot, error) { return nil, errors.New("503") }
		if _, err := u.Recover(t.Context(), lost, away); err == nil || !strings.Contains(err.Error(), "could not be fetched by digest: 503") {
			t.Errorf("%s: got %v", when, err)
		}
		plain := s.WithOverlays(nil) // as servers keep it
		has := func(context.Context, snapshot.Digest) (*snapshot.Snapshot, error) { return plain, nil }
		current, err := u.Recover(t.Context(), lost, has)
		if err != nil || current.Digest() != s.Digest() || len(current.Overlays()) != 1 {
			t.Fatalf("%s: recovered %v, %v; want its overlay too", when, current, err)
		}
		if err := u.Restore(current); err != nil {
			t.Fatal(err)
		}
		if back, err := snapshot.LoadFile(filepath.Join(u.Node.Dir(), snapshot.Path)); err != nil || len(back.Overlays()) != 1 {
			t.Errorf("%s: the snapshot is not back: %v", when, err)
		}
	}
}

// A daemon that takes over from another one starts from what that one left as current, if it had moved on, and else from
// the birth; and what upstream's first boot emptied is no move.
func TestTakesOver(t *testing.T) {
	moved := config{files: []string{fileJSON("/etc/a", "2")}}.seal(t, "2")
	hollow, err := snapshot.Seal([]byte(`{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","metadata":{"name":"rendered-worker-3"},"spec":{"config":{"ignition":{"version":"3.4.0"}}}}`), "worker")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		left *snapshot.Snapshot
		want string
	}{"moved on": {moved, "rendered-worker-2"}, "without content": {hollow, "rendered-worker-1"}, "nothing": {nil, "rendered-worker-1"}} {
		u, _ := born(t)
		if err := u.Node.Remove(handoff.CurrentPath); err != nil {
			t.Fatal(err)
		}
		if tc.left != nil {
			exported, err := tc.left.Export("")
			if err != nil {
				t.Fatal(err)
			}
			write(t, u.Node.Dir(), handoff.CurrentPath, string(exported))
		}
		start(t, u)
		if s, err := u.Current(); err != nil || s.Name() != tc.want {
			t.Errorf("%s: at %s, %v; want %s", name, s.Name(), err, tc.want)
		}
	}
}

// A machine that is provisioned again and keeps its /var starts from what it was born with this time.
func TestProvisionedAgain(t *testing.T) {
	u, _ := born(t)
	start(t, u)
	next := config{files: []string{fileJSON("/etc/a", "9")}}.seal(t, "9")
	if _, err := u.Update(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	other := config{files: []string{fileJSON("/etc/a", "5")}}.seal(t, "5")
	dir := u.Node.Dir()
	for name, text := range map[string]string{
		snapshot.Path: string(other.Bytes()), "etc/a": "5",
		handoff.AnnotationsPath: fmt.Sprintf(`{"machineconfiguration.openshift.io/currentConfig":%q,"mcsnap/birth-snapshot":%q}`, other.Name(), other.Digest()),
	} {
		write(t, dir, name, text)
	}
	if err := u.Node.Remove(handoff.CurrentPath); err != nil { // Ignition wrote a new /etc
		t.Fatal(err)
	}
	start(t, u)
	if s, err := u.Current(); err != nil || s.Digest() != other.Digest() {
		t.Errorf("at %v, %v; want the config of this birth", s, err)
	}
	if drift, err := u.Drift(t.Context()); err != nil || len(drift) > 0 {
		t.Errorf("drift: %v, %v", drift, err)
	}
}
