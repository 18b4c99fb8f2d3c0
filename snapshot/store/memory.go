// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcsnap/mcsnap/snapshot"
)

// Memory is a store for the life of a process. The zero value is not usable; see [NewMemory].
type Memory struct {
	mu       sync.RWMutex
	kept     map[snapshot.Digest]*kept
	selected map[string]snapshot.Digest
}

type kept struct {
	snapshot *snapshot.Snapshot
	entry    Entry
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{kept: map[snapshot.Digest]*kept{}, selected: map[string]snapshot.Digest{}}
}

// Put is [Store.Put].
func (m *Memory) Put(ctx context.Context, s *snapshot.Snapshot) error {
	if err := errors.Join(ctx.Err(), checkName("rendered config", s.Name()), checkName("pool", s.Pool())); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s = s.WithOverlays(nil)
	now := time.Now()
	next := Entry{Digest: s.Digest(), Name: s.Name(), Pool: s.Pool(), Size: int64(len(s.Bytes())), First: now, CapturedAt: now}
	if was := m.kept[s.Digest()]; was != nil {
		next.First, next.ServedAt = was.entry.First, was.entry.ServedAt
	}
	if named := m.named(s.Name()); len(named) > 0 {
		next.CapturedAt = later(now, named[0].CapturedAt)
		if named[0].Digest == s.Digest() {
			next.CapturedAt = named[0].CapturedAt
		}
	}
	m.kept[s.Digest()] = &kept{snapshot: s, entry: next}
	return nil
}

// named returns the entries of a name, newest first.
func (m *Memory) named(name string) []Entry {
	var entries []Entry
	for _, k := range m.kept {
		if k.entry.Name == name {
			entries = append(entries, k.entry)
		}
	}
	slices.SortFunc(entries, byAge)
	return entries
}

func byAge(a, b Entry) int {
	return cmp.Or(b.CapturedAt.Compare(a.CapturedAt), cmp.Compare(a.Digest, b.Digest))
}

// Get is [Store.Get].
func (m *Memory) Get(ctx context.Context, d snapshot.Digest) (*snapshot.Snapshot, error) {
	if err := errors.Join(ctx.Err(), checkDigest(d)); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if k := m.kept[d]; k != nil {
		return k.snapshot, nil
	}
	return nil, notFound("snapshot", d)
}

// Digests is [Store.Digests].
func (m *Memory) Digests(ctx context.Context, name string) ([]snapshot.Digest, error) {
	if err := errors.Join(ctx.Err(), checkName("rendered config", name)); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	var digests []snapshot.Digest
	for _, e := range m.named(name) {
		digests = append(digests, e.Digest)
	}
	if len(digests) == 0 {
		return nil, notFound("rendered config", name)
	}
	return digests, nil
}

// Select is [Store.Select].
func (m *Memory) Select(ctx context.Context, pool string, d snapshot.Digest) error {
	if err := errors.Join(ctx.Err(), checkName("pool", pool), checkDigest(d)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept[d] == nil {
		return notFound("snapshot", d)
	}
	m.selected[pool] = d
	return nil
}

// Selected is [Store.Selected].
func (m *Memory) Selected(ctx context.Context, pool string) (snapshot.Digest, error) {
	if err := errors.Join(ctx.Err(), checkName("pool", pool)); err != nil {
		return "", err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if d, ok := m.selected[pool]; ok {
		return d, nil
	}
	return "", notFound("pool", pool)
}

// MarkServed is [Store.MarkServed].
func (m *Memory) MarkServed(ctx context.Context, d snapshot.Digest, at time.Time) error {
	if err := errors.Join(ctx.Err(), checkDigest(d)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kept[d]; k != nil && at.After(k.entry.ServedAt) {
		k.entry.ServedAt = at
	}
	return nil
}

// Entries is [Store.Entries].
func (m *Memory) Entries(ctx context.Context) ([]Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	entries := make([]Entry, 0, len(m.kept))
	for _, k := range m.kept {
		e := k.entry
		for pool, d := range m.selected {
			if d == e.Digest {
				e.SelectedBy = append(e.SelectedBy, pool)
			}
		}
		slices.Sort(e.SelectedBy)
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Name, b.Name), byAge(a, b)) })
	return entries, nil
}

// Delete is [Store.Delete].
func (m *Memory) Delete(ctx context.Context, d snapshot.Digest) error {
	if err := errors.Join(ctx.Err(), checkDigest(d)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.kept, d)
	for pool, selected := range m.selected {
		if selected == d {
			delete(m.selected, pool)
		}
	}
	return nil
}

var _ Store = (*Memory)(nil)
