// SPDX-License-Identifier: Apache-2.0

package handoff_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/snapshot"
)

// What a first boot does in every state a node can be in. handsOver is whether the daemon's current config is the whole
// rendered config afterwards; where it is not, nothing at all may have changed.
func TestFirstBoot(t *testing.T) {
	s, other, twin := sealed(t, "1", 120), sealed(t, "2", 3), sealed(t, "1", 5)
	damaged := strings.Replace(string(s.Bytes()), "value%20119", "value%20000", 1)
	all := server(3, s, other)

	for name, test := range map[string]struct {
		files     map[string]string
		fetch     handoff.Fetch
		result    handoff.Result
		source    handoff.Source
		handsOver bool
		fails     string // part of the error
	}{
		"a fresh node, no server": {result: handoff.HandedOver, source: handoff.Embedded, handsOver: true},
		"no annotations, no agent.yaml": {
			files:  map[string]string{handoff.AnnotationsPath: "", handoff.ConfigPath: ""},
			result: handoff.HandedOver, source: handoff.Embedded, handsOver: true},
		"emptied by upstream's first boot (field case 10)": {
			files:  map[string]string{handoff.CurrentPath: string(emptied(t, s))},
			result: handoff.HandedOver, source: handoff.Embedded, handsOver: true},
		"same name, other spec": {
			files:  map[string]string{handoff.CurrentPath: string(twin.MachineConfig())},
			result: handoff.HandedOver, source: handoff.Embedded, handsOver: true},
		"current config cut short": {
			files:  map[string]string{handoff.CurrentPath: `{"metadata":{"name":"rendered-wor`},
			result: handoff.HandedOver, source: handoff.Embedded, handsOver: true},
		"current config empty after a power cut": {
			files:  map[string]string{handoff.CurrentPath: "\x00"},
			result: handoff.HandedOver, source: handoff.Embedded, handsOver: true},
		"a typo in agent.yaml, and no need of it": {
			files:  map[string]string{handoff.ConfigPath: "apiVersion: mcsnap/v1\nserver: [x]\n"},
			result: handoff.HandedOver, source: handoff.Embedded, handsOver: true},

		"damaged, fetched by digest": {
			files: map[string]string{snapshot.Path: damaged}, fetch: all,
			result: handoff.HandedOver, source: handoff.Fetched, handsOver: true},
		"missing, fetched by digest": {
			files: map[string]string{snapshot.Path: ""}, fetch: all,
			result: handoff.HandedOver, source: handoff.Fetched, handsOver: true},
		"cut short, fetched by digest": {
			files: map[string]string{snapshot.Path: string(s.Bytes()[:1000])}, fetch: all,
			result: handoff.HandedOver, source: handoff.Fetched, handsOver: true},
		"damaged, no server has it": {
			files: map[string]string{snapshot.Path: damaged}, fetch: server(9, other), fails: "503"},
		"damaged, a server gives another": {
			files: map[string]string{snapshot.Path: damaged}, fetch: lying(other), fails: string(other.Digest())},
		"damaged, no server known": {
			files: map[string]string{snapshot.Path: damaged, handoff.ConfigPath: ""}, fetch: all, fails: handoff.ConfigPath},
		"damaged, agent.yaml misspelt": {
			files: map[string]string{snapshot.Path: damaged, handoff.ConfigPath: "apiVersion: mcsnap/v1\nserver: [x]\n"},
			fetch: all, fails: `"server": did you mean "servers"`},
		"damaged, digest unknown": {
			files: map[string]string{snapshot.Path: damaged, handoff.AnnotationsPath: ""}, fetch: all, fails: "unknown"},
		"annotations cut short": {
			files: map[string]string{handoff.AnnotationsPath: `{"machineconf`}, fetch: all, fails: handoff.AnnotationsPath},

		"mixed provisioning (field case 95)": {
			files: map[string]string{handoff.AnnotationsPath: annotations(other)}, fetch: all, fails: "mixed provisioning"},
		"mixed provisioning, emptied current config of the other run": {
			files: map[string]string{handoff.AnnotationsPath: annotations(other), handoff.CurrentPath: string(emptied(t, other))},
			fetch: all, fails: "mixed provisioning"},
		"mixed provisioning of one name": {
			files: map[string]string{handoff.AnnotationsPath: annotations(twin)}, fetch: all, fails: string(twin.Digest())},

		"joined: kubelet certificate (field case 87)": {
			files: map[string]string{handoff.KubeletCertPath: "pem", snapshot.Path: damaged}, fetch: all, result: handoff.Joined},
		"joined: bootstrap ended": {
			files:  map[string]string{handoff.BootstrappedPath: annotations(s), handoff.AnnotationsPath: "", snapshot.Path: ""},
			result: handoff.Joined},
		"joined: annotations are older than the daemon's config (field case 87)": {
			files: map[string]string{handoff.CurrentPath: string(other.MachineConfig())}, fetch: all, result: handoff.Joined},
		"joined: without annotations, the daemon moved on": {
			files:  map[string]string{handoff.CurrentPath: string(other.MachineConfig()), handoff.AnnotationsPath: ""},
			result: handoff.Joined},
	} {
		t.Run(name, func(t *testing.T) {
			dir := born(t, s, test.files)
			before := tree(t, dir)
			outcome, err := handoff.Run(t.Context(), options(open(t, dir, nil), test.fetch))

			switch {
			case test.fails == "" && err != nil:
				t.Fatal(err)
			case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
				t.Fatalf("got error %v, want one with %q", err, test.fails)
			case test.fails != "" && strings.Contains(err.Error(), "\n"):
				t.Errorf("the error has several lines: %v", err)
			case test.fails == "" && (outcome.Result != test.result || outcome.Source != test.source):
				t.Errorf("got %+v, want %s from %q", outcome, test.result, test.source)
			}
			after := tree(t, dir)
			if !test.handsOver {
				delete(after, "var")
				delete(after, "var/lib")
				delete(after, "var/lib/mcsnap")
				delete(before, "var")
				delete(before, "var/lib")
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("the node was changed:\n%s", diff)
				}
				return
			}
			checkHandedOver(t, dir, s)
			if after["etc/machine-config-daemon/node-annotations.json"] != before["etc/machine-config-daemon/node-annotations.json"] {
				t.Error("the annotations file was touched: its rename is the daemon's")
			}

			again, err := handoff.Run(t.Context(), options(open(t, dir, nil), nil))
			if err != nil || again.Result != handoff.Unchanged || again.Source != test.source {
				t.Errorf("run again: got %+v, %v, want it unchanged", again, err)
			}
			if diff := cmp.Diff(after, tree(t, dir)); diff != "" {
				t.Errorf("run again: the node was changed:\n%s", diff)
			}
		})
	}
}

// checkHandedOver reads what a daemon would (field cases 10, 82).
func checkHandedOver(t *testing.T, dir string, s *snapshot.Snapshot) {
	t.Helper()
	path := filepath.Join(dir, handoff.CurrentPath)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	back, err := snapshot.Seal(text, "worker")
	if err != nil || back.Digest() != s.Digest() {
		t.Fatalf("the daemon's current config: %v; want the config of %s", err, s.Digest())
	}
	var object struct {
		Metadata struct {
			OwnerReferences []struct{ Kind, Name string } `json:"ownerReferences"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(text, &object); err != nil || len(object.Metadata.OwnerReferences) != 1 || object.Metadata.OwnerReferences[0].Name != "worker" {
		t.Errorf("the owner is %+v, %v; want pool worker", object, err)
	}
	for _, name := range []string{handoff.CurrentPath, snapshot.Path, handoff.RecordPath} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", name, info, err)
		}
	}
	if onDisk, err := snapshot.LoadFile(filepath.Join(dir, snapshot.Path)); err != nil || onDisk.Digest() != s.Digest() {
		t.Errorf("the snapshot on disk: %v", err)
	}
}

func lying(s *snapshot.Snapshot) handoff.Fetch {
	return func(_ context.Context, _ *handoff.Config, _ string, _ snapshot.Digest) (*snapshot.Snapshot, int, error) {
		return s, 1, nil
	}
}

func TestRecord(t *testing.T) {
	s := sealed(t, "1", 3)
	dir := born(t, s, map[string]string{snapshot.Path: ""})
	if _, err := handoff.Run(t.Context(), options(open(t, dir, nil), server(3, s))); err != nil {
		t.Fatal(err)
	}
	got, err := handoff.ReadRecord(open(t, dir, nil))
	want := &handoff.Record{Stage: handoff.Done, Name: s.Name(), Digest: s.Digest(), Source: handoff.Fetched, Attempts: 3, BootID: "boot-1", Version: "v1.2.3"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// Servers keep snapshots without overlays, and so the list is saved from the damaged file as far as the node's own
// files bear it out (field case 24).
func TestOverlaysSurviveARefetch(t *testing.T) {
	const ca = "new CA"
	plain := sealed(t, "1", 3)
	s := plain.WithOverlays([]snapshot.Overlay{
		{Path: "/etc/kubernetes/ca.crt", Reason: "controllerconfig", SHA256: sha256Hex(ca)},
		{Path: "/etc/kubernetes/gone.crt", Reason: "controllerconfig", SHA256: sha256Hex("gone")},
	})
	damaged := strings.Replace(string(s.Bytes()), "value%201", "value%209", 1)
	dir := born(t, s, map[string]string{snapshot.Path: damaged, "/etc/kubernetes/ca.crt": ca})
	outcome, err := handoff.Run(t.Context(), options(open(t, dir, nil), server(1, plain)))
	if err != nil || outcome.Overlays != 1 {
		t.Fatalf("got %+v, %v; want 1 overlay", outcome, err)
	}
	back, err := snapshot.LoadFile(filepath.Join(dir, snapshot.Path))
	if err != nil || len(back.Overlays()) != 1 || back.Overlays()[0].Path != "/etc/kubernetes/ca.crt" {
		t.Errorf("got %v, %v", back, err)
	}
}

// A scratch root's links stay in the root, whatever they say.
func TestLinksDoNotLeaveTheRoot(t *testing.T) {
	s := sealed(t, "1", 3)
	dir, outside := born(t, s, nil), t.TempDir()
	if err := os.RemoveAll(filepath.Join(dir, "var")); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		"var":                           outside, // absolute: that folder below the root, which is not there
		"etc/machine-config-daemon.old": "../../../../../..",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := handoff.Run(t.Context(), options(open(t, dir, nil), nil)); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("written outside of the root: %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(dir, outside, "lib/mcsnap/handover.json")); err != nil {
		t.Errorf("the link was not followed as on the node: %v", err)
	}
}

func TestOneAtATime(t *testing.T) {
	s := sealed(t, "1", 3)
	dir := born(t, s, nil)
	node := open(t, dir, nil)
	if err := node.MkdirAll("/var/lib/mcsnap", 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := node.Lock("/var/lib/mcsnap")
	if err != nil {
		t.Fatal(err)
	}
	_, err = handoff.Run(t.Context(), options(open(t, dir, nil), nil))
	if _, is := errors.AsType[*handoff.MachineError](err); !is {
		t.Errorf("got %v, want to be told that another is at work", err)
	}
	unlock()
	if _, err := handoff.Run(t.Context(), options(open(t, dir, nil), nil)); err != nil {
		t.Error(err)
	}
}

// A snapshot that is lost whole after a boot that had handed it over comes back with its overlays, from the record.
func TestOverlaysSurviveALoss(t *testing.T) {
	const ca = "new CA"
	plain := sealed(t, "1", 3)
	s := plain.WithOverlays([]snapshot.Overlay{{Path: "/etc/kubernetes/ca.crt", Reason: "controllerconfig", SHA256: sha256Hex(ca)}})
	dir := born(t, s, map[string]string{"/etc/kubernetes/ca.crt": ca})
	if _, err := handoff.Run(t.Context(), options(open(t, dir, nil), nil)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, snapshot.Path)); err != nil {
		t.Fatal(err)
	}
	if outcome, err := handoff.Run(t.Context(), options(open(t, dir, nil), server(1, plain))); err != nil || outcome.Overlays != 1 {
		t.Errorf("got %+v, %v; want 1 overlay", outcome, err)
	}
}
