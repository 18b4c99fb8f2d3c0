// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// Field case 28: what changes outside of the config refreshes the body under the same digest, what changes inside gets
// another digest, and what is half-way through is "not now" and no fault.
func TestKeyIsTheContentAlone(t *testing.T) {
	b := newBench(t)
	b.capture("a", "b")
	first := b.worker("a", "a", 1)
	for what, change := range map[string]func(*source.View){
		"credentials": func(v *source.View) { v.Kubeconfig = []byte("another token") },
		"a CA":        func(v *source.View) { v.Controller = &source.ControllerConfig{KubeletCA: []byte("another CA")} },
	} {
		now := b.worker("a", "a", 1, change)
		if !now.Ready() || now.Digest != first.Digest || now == first || now.Stale != "" {
			t.Errorf("%s: digest %s after %s, refreshed %v, stale %q", what, now.Digest, first.Digest, now != first, now.Stale)
		}
	}
	if now := b.worker("b", "b", 1); !now.Ready() || now.Digest == first.Digest {
		t.Errorf("another content has the digest %s", now.Digest)
	}

	pending := newBench(t)
	now := pending.worker("c", "c", 1) // the pool is here, its config is not
	if now.Ready() || now.Code != CodeNotCaptured {
		t.Errorf("half-way: %+v", now)
	}
	if failed := pending.said("level=ERROR", "compose"); failed != 0 {
		t.Error("what is not here yet is reported as a failure")
	}
	pending.capture("c")
	pending.again(t.Context())
	if now, _ := pending.Answer("worker"); !now.Ready() {
		t.Errorf("converged: %s", now.Reason)
	}
}

// Field case 4: where a pool's answer comes from is told for what the controller renders again and for what it does not;
// and for what the disk has not taken.
func TestOrigin(t *testing.T) {
	b := newBench(t)
	b.capture("a")
	has := func(v *source.View) { v.Rendered = map[string]snapshot.Digest{name("a"): sealed(t, "a").Digest()} }
	tells := func(when, want string) {
		t.Helper()
		if got := b.Origin("worker"); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
		for _, origin := range []string{OriginSource, OriginStore, OriginMemory} {
			if told := metricHas(t, b.registry, "mcsnap_pool_origin", "worker", origin); told != (origin == want) {
				t.Errorf("%s: the metric tells %s: %v", when, origin, told)
			}
		}
	}
	tells("before anything is known", "")
	b.worker("a", "a", 1, has)
	tells("it exists", OriginSource)
	b.worker("a", "a", 1)
	tells("it was deleted", OriginStore)
	b.worker("a", "a", 1, has)
	tells("it was rendered again", OriginSource)
	b.store.held = sealed(t, "a").Digest()
	tells("the disk took it not", OriginMemory)
	b.store.held = ""
	tells("the disk has it", OriginSource)
}

func metricHas(t *testing.T, registry *prometheus.Registry, name string, labels ...string) bool {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var values []string
			for _, label := range metric.GetLabel() {
				values = append(values, label.GetValue())
			}
			if family.GetName() == name && !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(values, l) }) {
				return true
			}
		}
	}
	return false
}

// Field case 22: an image that overrides the config's own goes into one answer and into no later one, whoever composes
// beside it; what was captured stays what it was. Run it under the race detector.
func TestAnOverrideLeavesNothingBehind(t *testing.T) {
	const original, override = "registry.example/os@sha256:original", "registry.example/layered@sha256:override"
	config := func(annotations string) *snapshot.Snapshot {
		s, err := snapshot.Seal(fmt.Appendf(nil, `{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig",
			"metadata":{"name":%q%s},"spec":{"osImageURL":%q,"config":{"ignition":{"version":"3.4.0"}}}}`, name("a"), annotations, original), "worker")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	layered, plain := config(`,"annotations":{"machineconfiguration.openshift.io/pre-built-image":"`+override+`"}`), config("")
	kept := store.NewMemory()
	for _, s := range []*snapshot.Snapshot{layered, plain} {
		if err := kept.Put(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	before := map[*snapshot.Snapshot][]byte{layered: bytes.Clone(layered.Bytes()), plain: bytes.Clone(plain.Bytes())}
	p := New(Config{Store: kept, Log: slog.New(slog.DiscardHandler)})
	view := func(s *snapshot.Snapshot) *source.View {
		return &source.View{
			Pools:    map[string]source.Pool{"worker": {Name: "worker", Spec: name("a"), Status: name("a"), Updated: 1}},
			Rendered: map[string]snapshot.Digest{name("a"): s.Digest()},
		}
	}
	image := func() string {
		a, _ := p.Answer("worker")
		if !a.Ready() {
			t.Fatal(a.Reason)
		}
		return imageIn(t, a.Bodies[specver.V3_4].JSON)
	}
	p.Update(t.Context(), view(layered))
	if got := image(); got != override {
		t.Errorf("layered: %s", got)
	}
	var all sync.WaitGroup
	for range 2 { // others compose of the same snapshots meanwhile
		all.Go(func() {
			for range 10 {
				for _, s := range []*snapshot.Snapshot{layered, plain} {
					for _, v := range []specver.Version{specver.V3_4, specver.V3_2} {
						if _, err := compose.Compose(compose.Inputs{Snapshot: s}, v); err != nil {
							t.Error(err)
						}
					}
				}
			}
		})
	}
	for range 20 { // a hundred bodies of each
		p.Update(context.Background(), view(layered))
		p.Update(context.Background(), view(plain))
		if got := image(); got != original {
			t.Fatalf("after the override was taken off: %s", got)
		}
	}
	all.Wait()
	for s, was := range before {
		if found, err := kept.Get(t.Context(), s.Digest()); err != nil || !bytes.Equal(found.Bytes(), was) || !bytes.Equal(s.Bytes(), was) {
			t.Errorf("answering changed what was captured: %v", err)
		}
	}
}

// imageIn is the OS image that a machine's first boot would move to.
func imageIn(t *testing.T, body []byte) string {
	t.Helper()
	var config struct {
		Storage struct {
			Files []struct {
				Path     string
				Contents struct{ Source, Compression string }
			}
		}
	}
	if err := json.Unmarshal(body, &config); err != nil {
		t.Fatal(err)
	}
	for _, file := range config.Storage.Files {
		if file.Path != compose.EncapsulatedPath {
			continue
		}
		text, err := contents.Decode(file.Contents.Source, file.Contents.Compression, contents.MaxInflated)
		var mc struct{ Spec struct{ OSImageURL string } }
		if err == nil {
			err = json.Unmarshal(text, &mc)
		}
		if err != nil {
			t.Fatal(err)
		}
		return mc.Spec.OSImageURL
	}
	t.Fatalf("no %s", compose.EncapsulatedPath)
	return ""
}
