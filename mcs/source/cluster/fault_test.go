// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/e2e/kube"
	"github.com/mcsnap/mcsnap/mcs/source/cluster"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// watching starts a source on a fake API server and waits until it watches.
func watching(t *testing.T, f func(*fakeAPI)) (*fakeAPI, *running) {
	api, config := newFakeAPI(t)
	f(api)
	r := start(t, config, openDir(t, filepath.Join(t.TempDir(), "store")), t.TempDir(), func(c *cluster.Config) { c.Recheck = 100 * time.Millisecond })
	api.until(t)
	return api, r
}

func (f *fakeAPI) until(t *testing.T) {
	t.Helper()
	eventually(t, "it watches", func() error {
		for _, resource := range []string{fakePools, fakeConfigs} {
			if f.watched(resource) == 0 {
				return fmt.Errorf("%s is not watched", resource)
			}
		}
		return nil
	})
}

// An event that never comes: the pool's name for the config is enough. Field case 21: the pool's event comes first.
func TestDroppedEvent(t *testing.T) {
	api, r := watching(t, func(*fakeAPI) {})
	api.set(fakeConfigs, rendered(name("w", 1), "one."), false)
	api.set(fakePools, kube.Pool("w", name("w", 1), name("w", 1), 1), true)
	eventually(t, "captured", func() error { return r.has(name("w", 1), "one.") })
	eventually(t, "in the view", func() error {
		if r.last().Rendered[name("w", 1)] == "" {
			return errors.New("not yet")
		}
		return nil
	})
}

// A deletion that overtakes its creation, and a creation told twice.
func TestReorderedEvents(t *testing.T) {
	api, r := watching(t, func(*fakeAPI) {})
	added := api.set(fakeConfigs, rendered(name("w", 1), "one."), false)
	deleted := api.remove(fakeConfigs, name("w", 1), false)
	api.say(fakeConfigs, deleted, added, added)
	eventually(t, "captured", func() error { return r.has(name("w", 1), "one.") })
}

// The server has forgotten the events, as an answer or in the middle of a watch: everything is read again, and what is
// gone is gone from the view and not from the store.
func TestGone(t *testing.T) {
	for how, tell := range map[string]func(*fakeAPI){
		"as an answer": func(f *fakeAPI) {
			f.mu.Lock()
			f.gone[fakeConfigs] = true
			f.mu.Unlock()
			f.say(fakeConfigs, hangUp)
		},
		"as an event": func(f *fakeAPI) {
			f.say(fakeConfigs, `{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}`+"\n")
		},
	} {
		t.Run(how, func(t *testing.T) {
			api, r := watching(t, func(f *fakeAPI) {
				f.set(fakeConfigs, rendered(name("w", 1), "one."), false)
				f.set(fakePools, kube.Pool("w", name("w", 2), name("w", 1), 0), false)
			})
			eventually(t, "captured", func() error { return r.has(name("w", 1), "one.") })
			api.remove(fakeConfigs, name("w", 1), false)
			api.set(fakeConfigs, rendered(name("w", 3), "three."), false)
			tell(api)
			eventually(t, "captured", func() error { return r.has(name("w", 3), "three.") })
			eventually(t, "gone from the view", func() error {
				if r.last().Rendered[name("w", 1)] != "" {
					return errors.New("still there")
				}
				return nil
			})
			if err := r.has(name("w", 1), "one."); err != nil {
				t.Errorf("not in the store any more: %v", err)
			}
		})
	}
}

// A list that is cut short is no list: what it lacks is not taken for deleted.
func TestCutList(t *testing.T) {
	_, r := watching(t, func(f *fakeAPI) {
		for n := range 10 {
			f.set(fakeConfigs, rendered(name("w", n), fmt.Sprintf("%d.", n)), false)
		}
		f.set(fakePools, kube.Pool("w", name("w", 9), name("w", 8), 0), false)
		f.cutList[fakeConfigs], f.cutList[fakePools] = 2, 2
	})
	eventually(t, "everything is there", func() error {
		if view := r.last(); len(view.Pools) != 1 || len(view.Rendered) != 2 {
			return fmt.Errorf("%+v", view)
		}
		return nil
	})
	for n := range 10 {
		if err := r.has(name("w", n), fmt.Sprintf("%d.", n)); err != nil {
			t.Error(err)
		}
	}
}

// Field case 35: a config that cannot be sealed marks its pool and no other; one of a newer Ignition is captured.
func TestBrokenConfig(t *testing.T) {
	broken := rendered(name("b", 1), "broken")
	broken["spec"].(map[string]any)["config"] = map[string]any{}
	newer := rendered(name("n", 1), "newer")
	newer["spec"].(map[string]any)["config"].(map[string]any)["ignition"] = map[string]any{"version": "3.99.0"}
	newer["spec"].(map[string]any)["fieldOfTheFuture"] = map[string]any{"x": int64(1)}
	_, r := watching(t, func(f *fakeAPI) {
		f.set(fakeConfigs, broken, false)
		f.set(fakeConfigs, newer, false)
		f.set(fakePools, kube.Pool("b", name("b", 1), name("b", 1), 1), false)
		f.set(fakePools, kube.Pool("n", name("n", 1), name("n", 1), 1), false)
	})
	eventually(t, "a view", func() error {
		if len(r.last().Pools) != 2 {
			return errors.New("none yet")
		}
		return nil
	})
	if why := r.last().Pools["b"].Problem; !strings.Contains(why, "/spec/config") {
		t.Errorf("the pool's problem is %q", why)
	}
	if why := r.last().Pools["n"].Problem; why != "" {
		t.Errorf("the other pool's problem is %q", why)
	}
	if err := r.has(name("n", 1), "fieldOfTheFuture"); err != nil {
		t.Errorf("an unknown field is lost: %v", err)
	}
}

// What the store loses it gets again, if the cluster still has it.
func TestCapturedAgain(t *testing.T) {
	_, r := watching(t, func(f *fakeAPI) {
		f.set(fakeConfigs, rendered(name("w", 1), "one."), false)
		f.set(fakePools, kube.Pool("w", name("w", 1), name("w", 1), 1), false)
	})
	eventually(t, "captured", func() error { return r.has(name("w", 1), "one.") })
	digests, err := r.store.Digests(t.Context(), name("w", 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.store.Delete(t.Context(), digests[0]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "captured again", func() error { return r.has(name("w", 1), "one.") })
}

// Field case 20: an administrator asks for the spec although no machine has proved it.
func TestForceSpec(t *testing.T) {
	api, config := newFakeAPI(t)
	for n := range 2 {
		api.set(fakeConfigs, rendered(name("w", n), "x"), false)
	}
	api.set(fakePools, kube.Pool("w", name("w", 1), name("w", 0), 0), false)
	r := start(t, config, store.NewMemory(), t.TempDir(), func(c *cluster.Config) { c.ForceSpec = []string{"w"} })
	eventually(t, "the spec is chosen", func() error {
		if r.last().Pools["w"].Updated != 1 {
			return fmt.Errorf("%+v", r.last().Pools["w"])
		}
		return nil
	})
}

// An API server that begins to stream a list and never ends it is asked for pages instead: a server that waits for it would
// answer no machine.
func TestStalledList(t *testing.T) {
	api, config := newFakeAPI(t)
	api.silent = true
	api.set(fakeConfigs, rendered(name("w", 1), "one."), false)
	api.set(fakePools, kube.Pool("w", name("w", 1), name("w", 1), 1), false)
	r := start(t, config, openDir(t, filepath.Join(t.TempDir(), "store")), t.TempDir(), func(c *cluster.Config) { c.ListPatience = 50 * time.Millisecond })
	eventually(t, "captured", func() error { return r.has(name("w", 1), "one.") })
	eventually(t, "published", func() error {
		if r.last().Rendered[name("w", 1)] == "" {
			return errors.New("not yet")
		}
		return nil
	})
}
