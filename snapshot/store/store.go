// SPDX-License-Identifier: Apache-2.0

// Package store keeps snapshots by digest, so that a rendered config can be served and found long after the cluster
// has forgotten it.
//
// A store also knows which digests a rendered name has had, which digest each pool was last answered with, and when a
// digest was last served. It decides nothing: which config a pool gets and what may be removed is its caller's business.
// [Dir] keeps all this in a folder, [Memory] for a process's life; package storetest is what every implementation has
// to pass, one over object storage included.
package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/mcsnap/mcsnap/snapshot"
)

// ErrNotFound says that the store has nothing of that digest, name or pool.
var ErrNotFound = errors.New("not in the store")

// DamagedError says that what was stored under a digest is no longer what was stored. It has been put aside; storing
// the snapshot again mends it.
type DamagedError struct {
	Digest snapshot.Digest
	Cause  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("snapshot %s is damaged in the store: %v", e.Digest, e.Cause)
}
func (e *DamagedError) Unwrap() error { return e.Cause }

// Store keeps snapshots. Its methods may be called from several goroutines. A method that returns nil has its effect on
// stable storage; one that returns an error may or may not have had it, and can be called again.
type Store interface {
	// Put stores a snapshot without its overlays, which belong to a moment and not to the content. Storing what is there
	// already changes nothing, except that the digest becomes the newest of its name and takes over the pool given. What
	// is there is compared, not trusted.
	Put(ctx context.Context, s *snapshot.Snapshot) error
	// Get returns a snapshot, verified. The error is ErrNotFound or a *DamagedError when there is none to be had.
	Get(ctx context.Context, d snapshot.Digest) (*snapshot.Snapshot, error)
	// Digests returns the digests that a rendered name has had, the one stored last first, or ErrNotFound.
	Digests(ctx context.Context, name string) ([]snapshot.Digest, error)
	// Select notes what a pool is answered with, which must be in the store.
	Select(ctx context.Context, pool string, d snapshot.Digest) error
	// Selected returns what Select noted last, or ErrNotFound.
	Selected(ctx context.Context, pool string) (snapshot.Digest, error)
	// MarkServed notes that a node was given a snapshot. Earlier times than the one noted, and digests that are not in
	// the store, change nothing.
	MarkServed(ctx context.Context, d snapshot.Digest, at time.Time) error
	// Entries describes all snapshots, ordered by name and then as Digests orders them. It reads no contents.
	Entries(ctx context.Context) ([]Entry, error)
	// Delete removes a snapshot with all that is noted about it, damaged copies included. Deleting what is not there
	// succeeds.
	Delete(ctx context.Context, d snapshot.Digest) error
}

// Entry describes a stored snapshot.
type Entry struct {
	Digest snapshot.Digest `json:"digest"`
	Name   string          `json:"name"`            // of the rendered config
	Pool   string          `json:"pool"`            // it was rendered for
	Size   int64           `json:"size"`            // of the sealed document, in bytes
	First  time.Time       `json:"firstCapturedAt"` // when it was first stored
	// CapturedAt is when it was last found in the cluster and not known to be the newest of its name.
	CapturedAt time.Time `json:"capturedAt"`
	// ServedAt is when a node was last given it; zero for never.
	ServedAt time.Time `json:"servedAt,omitzero"`
	// SelectedBy names the pools that were last answered with it, in order.
	SelectedBy []string `json:"selectedBy,omitempty"`
}

func notFound(what string, name any) error { return fmt.Errorf("%s %v: %w", what, name, ErrNotFound) }

var dnsSubdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// checkName refuses names that are no names of Kubernetes objects, before they become part of a path.
func checkName(what, name string) error {
	if len(name) > 253 || !dnsSubdomain.MatchString(name) {
		return fmt.Errorf("%s %.80q: not a Kubernetes name (RFC 1123)", what, name)
	}
	return nil
}

func checkDigest(d snapshot.Digest) error {
	_, err := snapshot.ParseDigest(string(d))
	return err
}

// later returns a moment for what is stored now that sorts after all that was stored before, even when the clock was
// set back meanwhile.
func later(now, newest time.Time) time.Time {
	if now.After(newest) {
		return now
	}
	return newest.Add(time.Nanosecond)
}
