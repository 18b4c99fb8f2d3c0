// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/e2e/kube"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

const (
	manyConfigs = 1000
	configSize  = 200_000
)

// Field cases 71 and 73: what a cluster holds costs the server disk and not memory. 1,000 rendered configs of 200 KB, all
// captured from nothing, once from an API server that streams lists and once from one that does not.
func TestMemory(t *testing.T) {
	c := kube.Start(t, kube.Options{})
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for n := worker; n < manyConfigs; n += 4 {
				name := fmt.Sprintf("rendered-worker-%032x", n)
				if _, err := c.TryApply(t.Context(), kube.Configs, "", kube.Rendered(name, name+" ", configSize)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	last := fmt.Sprintf("rendered-worker-%032x", manyConfigs-1)
	c.Apply(kube.Pools, "", kube.Pool("worker", last, last, 1))
	for _, path := range []struct {
		name    string
		streams bool
		limit   int // MB
	}{{"streamed lists", true, 60}, {"paged lists", false, 150}} {
		t.Run(path.name, func(t *testing.T) {
			c.StopAPI()
			c.SetWatchList(path.streams)
			c.StartAPI()
			s := newServer(t, c, c.Kubeconfig(c.Admin))
			begun := time.Now()
			s.Up()
			s.Within(5*time.Minute, "everything is captured", func() error {
				if captured := strings.Count(s.Output(), "msg=captured "); captured < manyConfigs {
					return fmt.Errorf("%d are", captured)
				}
				return nil
			})
			took := time.Since(begun)
			s.Ready()
			peak := s.Memory("VmHWM") / 1e6
			t.Logf("memory: configs=%d size=%d path=%q peak=%d MB now=%d MB captured in %v", manyConfigs, configSize, path.name,
				peak, s.Memory("VmRSS")/1e6, took.Round(100*time.Millisecond))
			if peak > path.limit {
				t.Errorf("a peak of %d MB, more than %d", peak, path.limit)
			}
			s.Kill()
			kept, err := store.OpenDir(filepath.Join(s.State, "store"), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer kept.Close() //nolint:errcheck // only read
			if entries, err := kept.Entries(t.Context()); err != nil || len(entries) != manyConfigs {
				t.Errorf("%d are in the store (%v), want %d", len(entries), err, manyConfigs)
			}
		})
	}
}
