// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// choice is which snapshot a pool is answered with, and what is to be said about it.
type choice struct {
	snapshot *snapshot.Snapshot
	fallback bool
	stale    string
}

// trouble is why there is nothing to answer with.
type trouble struct{ code, reason string }

// The codes of an Answer without a body.
const (
	CodeCredentials = "credentials"
	CodePool        = "pool-problem"
	CodeNotCaptured = "not-captured"
	CodeStore       = "store"
	CodeCompose     = "compose"
)

// choose finds the snapshot for a pool: what the pool names; if that was never captured, what it was answered with
// last.
func (p *Publisher) choose(ctx context.Context, pool source.Pool, was *Answer) (choice, *trouble) {
	if pool.Problem != "" {
		return p.keep(ctx, pool, was, CodePool, pool.Problem)
	}
	name := source.Select(pool)
	if name != "" {
		s, err := p.named(ctx, name)
		switch {
		case err == nil:
			return choice{snapshot: s}, nil
		case !errors.Is(err, store.ErrNotFound):
			p.metrics.storeFaults.Inc()
			return p.keep(ctx, pool, was, CodeStore, fmt.Sprintf("%s cannot be read from the store: %v", name, err))
		}
	}
	// Never captured. The last selected snapshot is what the pool's nodes were given so far; a status that was
	// captured is what they run.
	if last, err := p.selected(ctx, pool.Name); err == nil {
		return choice{snapshot: last, fallback: true}, nil
	}
	if pool.Status != "" && pool.Status != name {
		if s, err := p.named(ctx, pool.Status); err == nil {
			return choice{snapshot: s, fallback: true}, nil
		}
	}
	if name == "" {
		return choice{}, &trouble{CodeNotCaptured, fmt.Sprintf("pool %s has no configuration yet; wait until its status.configuration.name is set", pool.Name)}
	}
	if pool.Missing != "" {
		return choice{}, &trouble{CodeNotCaptured, fmt.Sprintf("pool %s names %s, which may be what cannot be read: %s", pool.Name, name, pool.Missing)}
	}
	return choice{}, &trouble{CodeNotCaptured, fmt.Sprintf("pool %s names %s, which was never captured; add that MachineConfig", pool.Name, name)}
}

// keep stays with what the pool was answered with, before a restart too.
func (p *Publisher) keep(ctx context.Context, pool source.Pool, was *Answer, code, why string) (choice, *trouble) {
	if was != nil && was.Digest != "" {
		if s, err := p.cfg.Store.Get(ctx, was.Digest); err == nil {
			return choice{snapshot: s, fallback: was.Fallback, stale: why}, nil
		}
	}
	if s, err := p.selected(ctx, pool.Name); err == nil {
		return choice{snapshot: s, fallback: true, stale: why}, nil
	}
	return choice{}, &trouble{code, why}
}

// named returns the snapshot of a name: the content the source sees now, else the newest that was captured and is not
// damaged.
func (p *Publisher) named(ctx context.Context, name string) (*snapshot.Snapshot, error) {
	var digests []snapshot.Digest
	if now, ok := p.view.Rendered[name]; ok {
		digests = append(digests, now)
	}
	captured, err := p.cfg.Store.Digests(ctx, name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	err = store.ErrNotFound
	for _, d := range append(digests, captured...) {
		s, fault := p.cfg.Store.Get(ctx, d)
		if fault == nil {
			return s, nil
		}
		if !errors.Is(fault, store.ErrNotFound) {
			err = fault
		}
	}
	return nil, err
}

func (p *Publisher) selected(ctx context.Context, pool string) (*snapshot.Snapshot, error) {
	d, err := p.cfg.Store.Selected(ctx, pool)
	if err != nil {
		return nil, err
	}
	return p.cfg.Store.Get(ctx, d)
}

// captured returns when a digest was captured, zero when the store does not say.
func (p *Publisher) captured(ctx context.Context, d snapshot.Digest) time.Time {
	entries, err := p.cfg.Store.Entries(ctx)
	if err != nil {
		p.metrics.storeFaults.Inc()
	}
	for _, e := range entries {
		if e.Digest == d {
			return e.CapturedAt
		}
	}
	return time.Time{}
}
