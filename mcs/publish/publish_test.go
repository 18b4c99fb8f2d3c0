// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// Field cases 3, 20 and 21: which snapshot a pool is answered with, in every state of pool and store.
func TestChoice(t *testing.T) {
	for _, c := range []struct {
		name         string
		captured     string // letters
		selected     string
		spec, status string
		updated      int32
		serves       string // letter, "" for none
		fallback     bool
	}{
		{"a settled pool", "a", "", "a", "a", 3, "a", false},
		{"nobody has the new one", "ab", "", "b", "a", 0, "a", false},
		{"somebody has the new one", "ab", "", "b", "a", 1, "b", false},
		{"the new one is not here yet", "a", "a", "b", "a", 1, "a", true},
		{"the new one is not here yet, nothing selected", "a", "", "b", "a", 1, "a", true},
		{"gone before it was captured", "x", "x", "b", "b", 0, "x", true},
		{"nothing was ever captured", "", "", "b", "a", 1, "", false},
		{"a pool that was just made", "a", "", "a", "", 0, "", false},
		{"a pool whose status was lost", "a", "a", "b", "", 0, "a", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.capture(strings.Split(c.captured, "")...)
			if c.selected != "" {
				if err := b.store.Select(context.Background(), "worker", sealed(t, c.selected).Digest()); err != nil {
					t.Fatal(err)
				}
			}
			a := b.worker(c.spec, c.status, c.updated)
			if c.serves == "" {
				if a.Ready() || a.Code != CodeNotCaptured || a.Reason == "" {
					t.Errorf("answer %+v, want none with a reason", a)
				}
				return
			}
			if !a.Ready() || a.Rendered != name(c.serves) || a.Digest != sealed(t, c.serves).Digest() || a.Fallback != c.fallback {
				t.Errorf("answer %s, fallback %v: %q; want %s", a.Rendered, a.Fallback, a.Reason, c.serves)
			}
			if c.fallback && b.said("level=WARN", "never captured") != 1 {
				t.Errorf("a fallback was not said: %s", b.log.String())
			}
		})
	}
}

// Field case 3: a config that was captured is served as before, whoever deletes the object.
func TestWhatWasCapturedIsServed(t *testing.T) {
	b := newBench(t)
	b.capture("a")
	first := b.worker("b", "a", 0, func(v *source.View) { v.Rendered = map[string]snapshot.Digest{name("a"): sealed(t, "a").Digest()} })
	if second := b.worker("b", "a", 0); second != first {
		t.Error("the deletion of the object changed the answer")
	}
}

func TestComposedOncePerChange(t *testing.T) {
	b := newBench(t)
	b.capture("a", "b")
	var told int
	b.OnChange(func(*Answer) { told++ })
	first := b.worker("a", "a", 0)
	versions := b.composed
	if versions != len(specver.All)-2 { // 2.2 and 3.0 to 3.4
		t.Errorf("composed %d versions", versions)
	}
	if b.worker("a", "a", 0) != first || b.worker("b", "a", 0) != first || b.composed != versions || told != 1 {
		t.Errorf("composed again without a change: %d, told %d times", b.composed, told)
	}
	renewed := b.worker("a", "a", 0, func(v *source.View) { v.Kubeconfig = []byte("new") })
	if b.composed != 2*versions || renewed.Digest != first.Digest || told != 2 {
		t.Errorf("new credentials: composed %d, told %d", b.composed, told)
	}
	b.worker("a", "a", 0, func(v *source.View) { v.Controller = &source.ControllerConfig{KubeletCA: []byte("new")} })
	if b.composed != 3*versions {
		t.Errorf("a new CA: composed %d", b.composed)
	}
}

// Field cases 35 and 78, and "a compose error keeps the last good body and is loud".
func TestTroubleKeepsTheLastGoodAnswer(t *testing.T) {
	for _, c := range []struct {
		name    string
		trouble func(b *bench, v *source.View)
		code    string // of the answer when there is no last good one
	}{
		{"a config that cannot be composed", func(b *bench, v *source.View) {
			b.refuse = func(in compose.Inputs, _ specver.Version) error { return errors.New("cannot be composed; mend it") }
			v.Kubeconfig = []byte("changed") // so that bodies have to be made
		}, CodeCompose},
		{"a lower version that fails for another reason than its age", func(b *bench, v *source.View) {
			b.refuse = func(_ compose.Inputs, to specver.Version) error {
				if to == specver.V3_1 {
					return errors.New("cannot be composed; mend it")
				}
				return nil
			}
			v.Kubeconfig = []byte("changed")
		}, CodeCompose},
		{"a pool with a problem", func(_ *bench, v *source.View) {
			p := v.Pools["worker"]
			p.Problem = "worker.yaml: broken; mend it"
			v.Pools["worker"] = p
		}, CodePool},
		{"a damaged snapshot", func(b *bench, _ *source.View) {
			b.store.get = &store.DamagedError{Digest: sealed(b.t, "a").Digest(), Cause: errDisk}
		}, CodeStore},
	} {
		t.Run(c.name, func(t *testing.T) {
			trouble := func(b *bench) func(*source.View) { return func(v *source.View) { c.trouble(b, v) } }
			fresh := newBench(t)
			fresh.capture("a")
			if a := fresh.worker("a", "a", 0, trouble(fresh)); a.Ready() || a.Code != c.code || a.Reason == "" {
				t.Errorf("without a last good answer: %+v, want code %s", a, c.code)
			}

			b := newBench(t)
			b.capture("a")
			good := b.worker("a", "a", 0)
			if !good.Ready() {
				t.Fatal(good.Reason)
			}
			for range 3 {
				a := b.worker("a", "a", 0, trouble(b))
				if !a.Ready() || a.Stale == "" || string(a.Bodies[a.Own].JSON) != string(good.Bodies[a.Own].JSON) {
					t.Errorf("the last good answer is gone: %+v", a)
				}
			}
			if checks := b.Checks(); len(checks) != 1 || checks[0].Problem != "" || !strings.Contains(checks[0].Note, "last good state") {
				t.Errorf("/readyz would say %+v", checks)
			}
			if b.said("level=ERROR", "in trouble") != 1 {
				t.Errorf("trouble was not said once:\n%s", b.log.String())
			}
			b.refuse, b.store.get = nil, nil
			if a := b.worker("a", "a", 0); a.Stale != "" || b.Checks()[0].Note != "" {
				t.Errorf("mended, and still stale: %s, %+v", a.Stale, b.Checks())
			}
		})
	}
}

func TestNoBodyWithoutCredentials(t *testing.T) {
	b := newBench(t)
	b.capture("a")
	b.worker("a", "a", 0)
	a := b.worker("a", "a", 0, func(v *source.View) { v.CredentialProblem = "the credentials have expired; write others" })
	if a.Ready() || a.Code != CodeCredentials {
		t.Errorf("answer %+v", a)
	}
}

func TestAVersionThatLacksAField(t *testing.T) {
	b := newBench(t)
	b.capture("a")
	b.refuse = func(_ compose.Inputs, v specver.Version) error {
		if v.Less(specver.V3_3) {
			return &specver.InexpressibleError{Field: "kernelArguments.shouldNotExist", Version: v}
		}
		return nil
	}
	a := b.worker("a", "a", 0)
	if !a.Ready() || len(a.Bodies) != 2 || a.Inexpressible[specver.V3_2] == nil {
		t.Errorf("answer %+v", a)
	}
}

// Field case 79.
func TestAnEmptyBodyIsNeverPublished(t *testing.T) {
	b := newBench(t)
	b.capture("a")
	b.cfg.Compose = func(_ compose.Inputs, v specver.Version) (*compose.Body, error) {
		return &compose.Body{Version: v}, nil
	}
	if a := b.worker("a", "a", 0); a.Ready() || a.Code != CodeCompose {
		t.Errorf("answer %+v", a)
	}
}

func TestTheSelectionOutlivesARestart(t *testing.T) {
	b := newBench(t)
	b.capture("a")
	b.store.choose = errDisk
	if a := b.worker("a", "a", 0); !a.Ready() || !strings.Contains(a.Stale, "after a restart") {
		t.Errorf("a selection that cannot be noted: %+v", a)
	}
	b.store.choose = nil
	b.again(context.Background())
	if a, _ := b.Answer("worker"); a.Stale != "" {
		t.Errorf("tried again, and still: %s", a.Stale)
	}
	if d, err := b.store.Selected(context.Background(), "worker"); err != nil || d != sealed(t, "a").Digest() {
		t.Errorf("selected %s, %v", d, err)
	}
}

func TestPoolsComeAndGo(t *testing.T) {
	b := newBench(t)
	if checks := b.Checks(); len(checks) != 1 || checks[0].Problem == "" {
		t.Errorf("an empty server is ready: %v", checks)
	}
	b.capture("a")
	b.worker("a", "a", 0)
	if checks := b.Checks(); len(checks) != 1 || checks[0].Problem != "" {
		t.Errorf("not ready: %v", checks)
	}
	b.cfg.Required = []string{"master"}
	if checks := b.Checks(); checks[0].Problem == "" {
		t.Error("ready without a required pool")
	}
	if got := New(b.cfgWithout()).Absent("worker"); got != NotReadYet {
		t.Errorf("before the first view: %v", got)
	}
	b.Update(context.Background(), &source.View{})
	if b.Absent("worker") != Vanished || b.Absent("infra") != NeverSeen {
		t.Errorf("absences: %v, %v", b.Absent("worker"), b.Absent("infra"))
	}
	if _, ok := b.Answer("worker"); ok || b.said("the pool is gone") != 1 {
		t.Error("a pool that is gone is still answered for")
	}
}

func TestServedIsWrittenDown(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.capture("a")
	b.worker("a", "a", 0).Served(1_800_000_123)
	b.FlushServed(ctx)
	entries, err := b.store.Entries(ctx)
	if err != nil || len(entries) != 1 || entries[0].ServedAt.Unix() != 1_800_000_123 {
		t.Errorf("entries %+v, %v", entries, err)
	}
}
