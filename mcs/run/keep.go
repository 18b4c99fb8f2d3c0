// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsnap/mcsnap/mcs/publish"
	"github.com/mcsnap/mcsnap/snapshot/durable"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

const (
	// mostHeld is how many bytes of snapshots stay in memory while the disk takes none: some hundred configs.
	mostHeld = 64 << 20
	// flushEvery is how often the disk is tried again.
	flushEvery = 5 * time.Second
)

// keeper is the store: a folder, with memory in front of it for when the disk takes nothing.
type keeper struct {
	*store.Held
	folder *store.Dir
	unlock func()
}

// close lets go of the state folder.
func (k keeper) close() {
	_ = k.folder.Close()
	k.unlock()
}

// open takes the state folder, opens the store in it and registers its figures.
func (cfg Config) open() (keeper, error) {
	bad := func(err error) (keeper, error) {
		return keeper{}, &MachineError{fmt.Errorf("state folder: %w; see --state-dir", err)}
	}
	if _, err := os.Stat(cfg.StateDir); errors.Is(err, os.ErrNotExist) {
		if err := durable.With(durable.OS).MkdirAll(cfg.StateDir, 0o700); err != nil {
			return bad(err)
		}
	} else if err != nil {
		return bad(err)
	}
	unlock, err := Lock(cfg.StateDir, cfg.Log)
	if err != nil {
		return keeper{}, &MachineError{err}
	}
	folder, err := store.OpenDir(filepath.Join(cfg.StateDir, "store"), cfg.Log)
	if err != nil {
		unlock()
		return bad(err)
	}
	kept := keeper{store.Hold(folder, mostHeld, cfg.Log), folder, unlock}
	damaged := prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "mcsnap", Name: "store_damaged_total", Help: "Stored snapshots that no longer matched their digest and were put aside.",
	})
	folder.OnDamage(func(*store.DamagedError) { damaged.Inc() })
	figure := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "mcsnap", Name: name, Help: help}, read)
	}
	if cfg.Registry != nil {
		cfg.Registry.MustRegister(damaged,
			figure("store_failing", "1 while the disk takes no snapshots.", func() float64 {
				if problem, _ := kept.Problem(); problem != "" {
					return 1
				}
				return 0
			}),
			figure("store_held_snapshots", "Snapshots that are in memory only, because the disk did not take them; a restart would lose them.", func() float64 {
				_, held := kept.Problem()
				return float64(held)
			}))
	}
	return kept, nil
}

// notes is what /readyz?verbose says besides what readiness hangs on.
func (cfg Config) notes(kept keeper) []publish.Check {
	note := publish.Check{Name: "store"}
	if problem, held := kept.Problem(); problem != "" {
		note.Problem = fmt.Sprintf("%s; %d snapshot(s) are in memory only", problem, held)
	}
	notes := []publish.Check{note}
	if cfg.Notes != nil {
		notes = append(notes, cfg.Notes()...)
	}
	return notes
}
