// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mcsnap/mcsnap/e2e/kube"
	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/mcs/source/cluster"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// running is a source at work, with the views it published.
type running struct {
	t     *testing.T
	store store.Store
	state string
	stop  func()

	mu    sync.Mutex
	views []*source.View
}

func (r *running) last() *source.View {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.views) == 0 {
		return &source.View{}
	}
	return r.views[len(r.views)-1]
}

// start runs a source on a store and state that may have a past.
func start(t *testing.T, rest *rest.Config, kept store.Store, state string, change ...func(*cluster.Config)) *running {
	t.Helper()
	cfg := cluster.Config{
		REST: rest, Store: kept, State: state, NoCredentials: true, Recheck: time.Second,
		Log: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	}
	for _, f := range change {
		f(&cfg)
	}
	s, err := cluster.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, store: kept, state: state}
	done := make(chan error, 1)
	go func() {
		done <- s.Run(ctx, func(v *source.View) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.views = append(r.views, v)
		})
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	if testing.Verbose() {
		fmt.Fprintf(os.Stderr, "    %s: %s", w.t.Name(), p)
	}
	return len(p), nil
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// has fails until the store has the config with its very text.
func (r *running) has(name, text string) error {
	digests, err := r.store.Digests(r.t.Context(), name)
	if err != nil {
		return err
	}
	s, err := r.store.Get(r.t.Context(), digests[0])
	if err != nil {
		return err
	}
	if !strings.Contains(string(s.MachineConfig()), text) {
		return fmt.Errorf("%s is captured with other contents", name)
	}
	return nil
}

func name(pool string, n int) string { return fmt.Sprintf("rendered-%s-%032x", pool, n) }

// What is shown against a real API server, one that streams lists and one that does not.
func TestRealAPIServer(t *testing.T) {
	for mode, options := range map[string]kube.Options{"streamed lists": {}, "paged lists": {NoWatchList: true}} {
		t.Run(mode, func(t *testing.T) {
			c := kube.Start(t, options)
			for name, test := range map[string]func(*testing.T, *kube.Cluster){
				"what is there and what comes": thereAndComing, "rendered and deleted at once": shortLived,
				"restart in the middle": restart, "API server restarts": outage,
			} {
				t.Run(name, func(t *testing.T) { test(t, c) })
			}
		})
	}
}

// Field case 21 among others: a pool may name a config before the config's own event is here.
func thereAndComing(t *testing.T, c *kube.Cluster) {
	for n := range 20 {
		c.Apply(kube.Configs, "", kube.Rendered(name("there", n), fmt.Sprintf("there-%d.", n), 1000))
	}
	c.Apply(kube.Configs, "", kube.Rendered("an-old-name", "old", 1000))
	c.Apply(kube.Configs, "", kube.Rendered("00-worker", "not rendered", 1000))
	c.Apply(kube.Pools, "", kube.Pool("there", name("there", 1), name("there", 0), 0))
	c.Apply(kube.Pools, "", kube.Pool("old", "an-old-name", "an-old-name", 1))
	r := start(t, c.Admin, store.NewMemory(), t.TempDir())
	eventually(t, "a view", func() error {
		if len(r.last().Pools) < 2 {
			return fmt.Errorf("%d pools", len(r.last().Pools))
		}
		return nil
	})
	for n := range 20 {
		if err := r.has(name("there", n), fmt.Sprintf("there-%d.", n)); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.store.Digests(t.Context(), "00-worker"); err == nil {
		t.Error("a config that is not a rendered one was captured")
	}
	view := r.last()
	if got, want := view.Pools["there"], (source.Pool{Name: "there", Spec: name("there", 1), Status: name("there", 0)}); got != want {
		t.Errorf("pool %+v, want %+v", got, want)
	}
	for _, rendered := range []string{name("there", 0), name("there", 1), "an-old-name"} {
		if view.Rendered[rendered] == "" {
			t.Errorf("the view does not know %s", rendered)
		}
	}
	c.Apply(kube.Configs, "", kube.Rendered(name("there", 99), "new", 1000))
	c.Apply(kube.Pools, "", kube.Pool("there", name("there", 99), name("there", 1), 1))
	eventually(t, "the pool moves on", func() error {
		if view := r.last(); view.Pools["there"].Updated != 1 || view.Rendered[name("there", 99)] == "" {
			return fmt.Errorf("view is %+v", view)
		}
		return nil
	})
	// Content that changes in place under one name (annotations do) is another digest of the name.
	changed := kube.Rendered(name("there", 99), "new", 1000)
	changed["metadata"].(map[string]any)["annotations"] = map[string]any{"machineconfiguration.openshift.io/release-image-version": "2"}
	was := r.last().Rendered[name("there", 99)]
	c.Apply(kube.Configs, "", changed)
	eventually(t, "the view has the new digest", func() error {
		if now := r.last().Rendered[name("there", 99)]; now == was {
			return fmt.Errorf("still %s", now)
		}
		return nil
	})
	c.Delete(kube.Pools, "old")
	eventually(t, "a pool that is gone", func() error {
		if _, there := r.last().Pools["old"]; there {
			return fmt.Errorf("it is still in the view")
		}
		return nil
	})
}

// Each config is deleted the moment it exists, while the connection is cut again and again in the middle of events:
// every one of them is captured.
func shortLived(t *testing.T, c *kube.Cluster) {
	cuts := &cutter{after: 4000}
	config := rest.CopyConfig(c.Admin)
	config.Wrap(cuts.wrap)
	r := start(t, config, store.NewMemory(), t.TempDir())
	eventually(t, "a first view", func() error {
		if r.last().Pools == nil {
			return fmt.Errorf("none yet")
		}
		return nil
	})
	for n := range 60 {
		c.Apply(kube.Configs, "", kube.Rendered(name("short", n), fmt.Sprintf("short-%d.", n), 1500))
		c.Delete(kube.Configs, name("short", n))
	}
	for n := range 60 {
		eventually(t, "captured", func() error { return r.has(name("short", n), fmt.Sprintf("short-%d.", n)) })
	}
	if cuts.count() < 10 {
		t.Errorf("the connection was cut %d times only; this shows nothing", cuts.count())
	}
}

// The server is away while configs are rendered and deleted; the next one still captures them.
func restart(t *testing.T, c *kube.Cluster) {
	dir, state := t.TempDir(), t.TempDir()
	kept := openDir(t, dir)
	r := start(t, c.Admin, kept, state)
	c.Apply(kube.Configs, "", kube.Rendered(name("restart", 0), "before.", 1000))
	c.Apply(kube.Pools, "", kube.Pool("restart", name("restart", 0), name("restart", 0), 1))
	eventually(t, "captured", func() error { return r.has(name("restart", 0), "before.") })
	eventually(t, "remembered", func() error {
		text, err := os.ReadFile(filepath.Join(state, "cluster.json"))
		if err == nil && !strings.Contains(string(text), name("restart", 0)) {
			err = fmt.Errorf("another state")
		}
		return err
	})
	r.stop()
	for n := 1; n < 5; n++ {
		c.Apply(kube.Configs, "", kube.Rendered(name("restart", n), fmt.Sprintf("away-%d.", n), 1000))
		c.Delete(kube.Configs, name("restart", n))
	}
	r = start(t, c.Admin, kept, state)
	for n := 1; n < 5; n++ {
		eventually(t, "captured after the fact", func() error { return r.has(name("restart", n), fmt.Sprintf("away-%d.", n)) })
	}
}

// The API server goes away and comes back; a server that starts meanwhile knows what the last one knew.
func outage(t *testing.T, c *kube.Cluster) {
	kept, state := openDir(t, t.TempDir()), t.TempDir()
	c.Apply(kube.Configs, "", kube.Rendered(name("outage", 0), "zero.", 1000))
	c.Apply(kube.Pools, "", kube.Pool("outage", name("outage", 0), name("outage", 0), 1))
	r := start(t, c.Admin, kept, state)
	knows := func(n int) func() error {
		return func() error {
			if digest := r.last().Rendered[name("outage", n)]; digest == "" {
				return fmt.Errorf("no digest in the view")
			}
			return nil
		}
	}
	eventually(t, "known", knows(0))
	want := r.last()
	c.StopAPI()
	time.Sleep(300 * time.Millisecond)
	r.stop()
	r = start(t, c.Admin, kept, state)
	begun := time.Now()
	eventually(t, "known without the API server", knows(0))
	t.Logf("known %v after the restart, without the API server (field case 106)", time.Since(begun))
	if got := r.last(); got.Pools["outage"] != want.Pools["outage"] || got.Rendered[name("outage", 0)] != want.Rendered[name("outage", 0)] {
		t.Errorf("view %+v, want %+v", got, want)
	}
	c.StartAPI()
	c.Apply(kube.Configs, "", kube.Rendered(name("outage", 1), "one.", 1000))
	c.Apply(kube.Pools, "", kube.Pool("outage", name("outage", 1), name("outage", 1), 1))
	eventually(t, "known after the outage", knows(1))
}

func openDir(t *testing.T, dir string) *store.Dir {
	t.Helper()
	d, err := store.OpenDir(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}
