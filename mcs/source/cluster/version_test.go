// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/e2e/kube"
	"github.com/mcsnap/mcsnap/mcs/source/cluster"
	"github.com/mcsnap/mcsnap/snapshot/durable/durabletest"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// version is the resource version that a restart would read on from.
func version(t *testing.T, state string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(state, "cluster.json"))
	if err != nil {
		t.Fatal(err)
	}
	var remembered struct{ Version string }
	if err := json.Unmarshal(text, &remembered); err != nil {
		t.Fatal(err)
	}
	number, _ := strconv.Atoi(remembered.Version) // none counts as 0
	return number
}

// The version to read on from never moves beyond a config that is in memory only, deleted or not: the next process has to
// see its events again.
func TestVersionWaitsForTheDisk(t *testing.T) {
	disk := &durabletest.Disk{}
	d, err := store.OpenDirOn(disk, filepath.Join(t.TempDir(), "store"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	held := store.Hold(d, 1<<20, slog.New(slog.DiscardHandler))
	disk.FailAt, disk.Err, disk.Dead = len(disk.Steps())+1, syscall.ENOSPC, true

	api, config := newFakeAPI(t)
	api.set(fakePools, kube.Pool("w", "", "", 0), false)
	state := t.TempDir()
	r := start(t, config, held, state, func(c *cluster.Config) { c.Recheck = 20 * time.Millisecond })
	api.until(t)
	api.set(fakeConfigs, rendered(name("w", 1), "one."), true)
	created := api.version
	eventually(t, "held", func() error { return r.has(name("w", 1), "one.") })
	api.remove(fakeConfigs, name("w", 1), true)
	api.set(fakePools, kube.Pool("w", name("w", 1), name("w", 1), 1), true)
	eventually(t, "the pool is in the view", func() error {
		if r.last().Pools["w"].Spec == "" {
			return errors.New("not yet")
		}
		return nil
	})
	time.Sleep(100 * time.Millisecond) // several rechecks, which remember
	if got := version(t, state); got >= created {
		t.Fatalf("version %d is remembered, and the config of version %d is on no disk", got, created)
	}
	disk.Dead = false
	held.Flush(t.Context())
	eventually(t, "the version moves on", func() error {
		if got := version(t, state); got < created {
			return fmt.Errorf("it is %d", got)
		}
		return nil
	})
}

// A process that dies before it has caught up leaves the version for the next one.
func TestVersionWaitsForCatchingUp(t *testing.T) {
	api, config := newFakeAPI(t)
	api.set(fakePools, kube.Pool("w", name("w", 1), name("w", 1), 1), false)
	api.set(fakeConfigs, rendered(name("w", 1), "one."), false)
	state := t.TempDir()
	remembered := `{"pools":{"w":{"Name":"w","Spec":"x","Status":"x"}},"rendered":{},"version":"50"}`
	if err := os.WriteFile(filepath.Join(state, "cluster.json"), []byte(remembered), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, config, store.NewMemory(), state)
	eventually(t, "a view", func() error {
		if r.last().Pools["w"].Spec != name("w", 1) {
			return errors.New("not yet")
		}
		return nil
	})
	r.stop()
	if got := version(t, state); got != 50 {
		t.Errorf("version %d is remembered, want 50", got)
	}
}
