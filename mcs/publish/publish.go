// SPDX-License-Identifier: Apache-2.0

// Package publish turns what a source knows and a store holds into the table of answers that the server reads: one
// immutable Answer per pool, composed once per change and swapped in as a whole. Whatever goes wrong keeps the last
// good answer and is said loudly. It knows nothing of HTTP.
package publish

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// Config of a Publisher. Store and Log are needed.
type Config struct {
	Store store.Store
	Log   *slog.Logger
	// Registry takes the publisher's metrics; nil means none.
	Registry prometheus.Registerer
	// Inputs is what goes into every pool's bodies: agents, the agent's configuration. Snapshot, Kubeconfig and
	// Files are filled in for each pool.
	Inputs compose.Inputs
	// Required names the pools without which the server is not ready; empty means every known pool, at least one.
	Required []string
	// Compose makes bodies; nil means compose.Compose.
	Compose func(compose.Inputs, specver.Version) (*compose.Body, error)
	// Now tells the time; nil means the clock.
	Now func() time.Time
}

// Publisher keeps the table. Answer may be called from any goroutine at any time.
type Publisher struct {
	cfg     Config
	metrics *metrics
	table   atomic.Pointer[map[string]*Answer]
	synced  atomic.Bool
	seen    sync.Map // by name, every pool that was ever in the table
	exists  atomic.Pointer[map[snapshot.Digest]bool]

	mu       sync.Mutex // held by what changes the table
	view     *source.View
	onChange []func(*Answer)
	said     map[string]string // by pool, the trouble that stands and was said

	servedMu sync.Mutex
	served   map[snapshot.Digest]*atomic.Int64
}

// New returns a Publisher with an empty table.
func New(cfg Config) *Publisher {
	if cfg.Compose == nil {
		cfg.Compose = compose.Compose
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	p := &Publisher{cfg: cfg, metrics: newMetrics(cfg.Registry), said: map[string]string{}, served: map[snapshot.Digest]*atomic.Int64{}}
	p.table.Store(&map[string]*Answer{})
	if cfg.Registry != nil {
		cfg.Registry.MustRegister(origins{p})
	}
	return p
}

// Answer returns what to answer for a pool; false when there is no such pool.
func (p *Publisher) Answer(pool string) (*Answer, bool) {
	a, ok := (*p.table.Load())[pool]
	return a, ok
}

// Absence says what is known of a pool that has no answer.
type Absence int

const (
	// NotReadYet: the source has said nothing yet, so no pool is known to be missing.
	NotReadYet Absence = iota
	// Vanished: the pool had an answer since the server was started. Its file may be being replaced.
	Vanished
	// NeverSeen: the source does not know it and has not known it since the server was started.
	NeverSeen
)

// Absent says why a pool has no answer.
func (p *Publisher) Absent(pool string) Absence {
	if _, seen := p.seen.Load(pool); seen {
		return Vanished
	}
	if !p.synced.Load() {
		return NotReadYet
	}
	return NeverSeen
}

// OnChange has f called with every Answer that takes the place of another, from the goroutine that changes the table.
func (p *Publisher) OnChange(f func(*Answer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onChange = append(p.onChange, f)
}

// retry is how often what went wrong is tried again when the source has nothing new to say.
const retry = 5 * time.Second

// Run takes up what the source publishes until ctx ends, and tries again what did not work.
func (p *Publisher) Run(ctx context.Context, from source.Source) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer func() { <-done }()
	go func() {
		defer close(done)
		clock := time.NewTicker(retry)
		defer clock.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-clock.C:
				p.again(ctx)
				p.FlushServed(ctx)
			}
		}
	}()
	defer cancel()
	return from.Run(ctx, func(v *source.View) { p.Update(ctx, v) })
}

// again repeats the last update if some pool is without a fresh answer.
func (p *Publisher) again(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.view == nil {
		return
	}
	for _, a := range *p.table.Load() {
		if !a.Ready() || a.Stale != "" || a.Fallback {
			p.update(ctx)
			return
		}
	}
}

// Update takes up a View. When it returns the new table is in place.
func (p *Publisher) Update(ctx context.Context, view *source.View) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.view = view
	p.update(ctx)
}

func (p *Publisher) update(ctx context.Context) {
	exists := make(map[snapshot.Digest]bool, len(p.view.Rendered)) // what the source has now
	for _, digest := range p.view.Rendered {
		exists[digest] = true
	}
	p.exists.Store(&exists)
	old := *p.table.Load()
	table := make(map[string]*Answer, len(p.view.Pools))
	for _, name := range slices.Sorted(maps.Keys(p.view.Pools)) {
		next := p.answer(ctx, p.view.Pools[name], old[name])
		if ctx.Err() != nil { // shutting down: what failed now says nothing
			return
		}
		table[name] = next
	}
	for name := range table {
		p.seen.Store(name, true)
	}
	p.table.Store(&table)
	p.synced.Store(true)
	for name, next := range table {
		p.tell(name, old[name], next)
	}
	for name := range old {
		if table[name] == nil {
			p.metrics.forget(name)
			delete(p.said, name)
			p.cfg.Log.Info("the pool is gone; its nodes are told to wait", "pool", name)
		}
	}
}

// tell logs, measures and passes on what changed for one pool.
func (p *Publisher) tell(pool string, was, is *Answer) {
	if was == is {
		return
	}
	p.metrics.show(is)
	trouble := is.Reason + is.Stale
	switch {
	case trouble != "" && trouble != p.said[pool]:
		p.cfg.Log.Error("a pool is in trouble", "pool", pool, "serving", is.Rendered, "problem", trouble)
	case is.Ready() && (was == nil || was.Digest != is.Digest || was.inputs != is.inputs || !was.Ready()):
		p.cfg.Log.Info("a pool is served", "pool", pool, "rendered", is.Rendered, "digest", is.Digest, "own_version", is.Own.String())
		for _, warning := range is.Bodies[is.Own].Warnings {
			p.cfg.Log.Info("Ignition warns of the config", "pool", pool, "rendered", is.Rendered, "warning", warning)
		}
		for _, v := range slices.SortedFunc(maps.Keys(is.Inexpressible), specver.Version.Compare) {
			p.cfg.Log.Info("a version cannot be served", "pool", pool, "version", v.String(), "reason", is.Inexpressible[v])
		}
	}
	if is.Fallback && (was == nil || !was.Fallback) {
		p.cfg.Log.Warn("what the pool names was never captured; its last selected snapshot is served instead",
			"pool", pool, "names", source.Select(p.view.Pools[pool]), "rendered", is.Rendered, "digest", is.Digest)
	}
	p.said[pool] = trouble
	for _, f := range p.onChange {
		f(is)
	}
}
