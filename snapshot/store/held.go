// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mcsnap/mcsnap/snapshot"
)

// HeldError says that a snapshot could not be stored and is kept in memory until it can: it is served meanwhile, but a
// restart would lose it.
type HeldError struct {
	Digest snapshot.Digest
	Cause  error
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("snapshot %s is kept in memory only: %v", e.Digest, e.Cause)
}
func (e *HeldError) Unwrap() error { return e.Cause }

// Held is a store in front of another that keeps in memory what the other cannot take just now, and tries again. With
// it a full or read-only disk delays what is durable and not what is served.
type Held struct {
	Store
	log   *slog.Logger
	limit int64

	mu      sync.Mutex
	held    map[snapshot.Digest]*snapshot.Snapshot
	order   []snapshot.Digest // oldest first
	size    int64
	problem string
}

// Hold wraps a store; up to limit bytes of snapshots are kept in memory.
func Hold(inner Store, limit int64, log *slog.Logger) *Held {
	return &Held{Store: inner, log: log, limit: limit, held: map[snapshot.Digest]*snapshot.Snapshot{}}
}

// Put stores a snapshot, or keeps it and returns a *HeldError. Any other error says that it was neither stored nor kept.
func (h *Held) Put(ctx context.Context, s *snapshot.Snapshot) error {
	h.Flush(ctx) // in their order, so that what is newest of a name stays it
	return h.put(ctx, s)
}

func (h *Held) put(ctx context.Context, s *snapshot.Snapshot) error {
	err := h.Store.Put(ctx, s)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.drop(s.Digest())
		h.report(nil)
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	h.report(err)
	size := int64(len(s.MachineConfig()))
	if h.held[s.Digest()] == nil {
		if h.size+size > h.limit {
			return fmt.Errorf("%w; and %d bytes of others are kept in memory already", err, h.size)
		}
		h.size += size
		h.order = append(h.order, s.Digest())
	}
	h.held[s.Digest()] = s.WithOverlays(nil)
	return &HeldError{Digest: s.Digest(), Cause: err}
}

func (h *Held) drop(d snapshot.Digest) {
	if s := h.held[d]; s != nil {
		h.size -= int64(len(s.MachineConfig()))
		delete(h.held, d)
		h.order = slices.DeleteFunc(h.order, func(other snapshot.Digest) bool { return other == d })
	}
}

// report says once that storing fails, and once that it works again.
func (h *Held) report(err error) {
	switch {
	case err != nil && h.problem == "":
		h.log.Error("the store takes nothing; what is new is served from memory and would be lost by a restart", "error", err)
	case err == nil && h.problem != "" && len(h.held) == 0:
		h.log.Info("the store takes snapshots again, and has all that was kept in memory")
	case err == nil:
		return
	}
	h.problem = ""
	if err != nil {
		h.problem = err.Error()
	}
}

// Problem returns in one line why the store takes nothing, "" when it does, and how many snapshots are only in memory.
func (h *Held) Problem() (problem string, held int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.problem, len(h.held)
}

// Holds reports whether a snapshot is kept in memory only.
func (h *Held) Holds(d snapshot.Digest) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held[d] != nil
}

// Run tries again, once per interval, to store what is kept, until ctx ends.
func (h *Held) Run(ctx context.Context, every time.Duration) {
	clock := time.NewTicker(every)
	defer clock.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
			h.Flush(ctx)
		}
	}
}

// Flush tries once to store what is kept, oldest first.
func (h *Held) Flush(ctx context.Context) {
	h.mu.Lock()
	waiting := slices.Clone(h.order)
	h.mu.Unlock()
	for _, d := range waiting {
		h.mu.Lock()
		s := h.held[d]
		h.mu.Unlock()
		if s != nil && h.put(ctx, s) != nil {
			return // whatever ails the disk ails it for the next one too
		}
	}
}

// Get is [Store.Get]; what is kept is found too.
func (h *Held) Get(ctx context.Context, d snapshot.Digest) (*snapshot.Snapshot, error) {
	h.mu.Lock()
	s := h.held[d]
	h.mu.Unlock()
	if s != nil {
		return s, nil
	}
	return h.Store.Get(ctx, d)
}

// Digests is [Store.Digests]; what is kept is newest.
func (h *Held) Digests(ctx context.Context, name string) ([]snapshot.Digest, error) {
	var digests []snapshot.Digest
	h.mu.Lock()
	for _, d := range slices.Backward(h.order) {
		if h.held[d].Name() == name {
			digests = append(digests, d)
		}
	}
	h.mu.Unlock()
	stored, err := h.Store.Digests(ctx, name)
	if len(digests) == 0 {
		return stored, err
	}
	for _, d := range stored {
		if !slices.Contains(digests, d) {
			digests = append(digests, d)
		}
	}
	return digests, nil
}

// MarkServed is [Store.MarkServed].
func (h *Held) MarkServed(ctx context.Context, d snapshot.Digest, at time.Time) error {
	h.mu.Lock()
	kept := h.held[d] != nil
	h.mu.Unlock()
	err := h.Store.MarkServed(ctx, d, at)
	if err == nil && kept {
		return &HeldError{Digest: d, Cause: errors.New("when it was served is noted once it is stored")}
	}
	return err
}

// Delete is [Store.Delete]; what is kept is forgotten too.
func (h *Held) Delete(ctx context.Context, d snapshot.Digest) error {
	h.mu.Lock()
	h.drop(d)
	h.mu.Unlock()
	return h.Store.Delete(ctx, d)
}

var _ Store = (*Held)(nil)
