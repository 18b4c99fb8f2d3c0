// SPDX-License-Identifier: Apache-2.0

// Package change brings a node's disk from one rendered config to another, all or nothing. What is to be done is written
// down before the first change, with the content of both sides: whoever finds that journal, after a crash at any point,
// finishes the update or takes it back. Files of the OS image that a config replaces are kept, and come back when no
// config has them any more.
//
// It knows no cluster. It is not a package manager, and refuses what only a fresh provisioning can do.
package change

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"

	"github.com/mcsnap/mcsnap/agent/daemon/desired"
	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
)

// Updater works on one node. It is for one goroutine.
type Updater struct {
	Node   *root.Root
	Units  Units
	BootID string
	Log    *slog.Logger
}

// UnreconcilableError lists what a running node cannot be brought to. Nothing was touched.
type UnreconcilableError struct {
	From, To string
	Changes  []string
}

func (e *UnreconcilableError) Error() string {
	return fmt.Sprintf("from %s to %s a running node cannot go: %s; provision a new node, or take the change back", e.From, e.To, strings.Join(e.Changes, "; "))
}

// FailedError says that an update failed half-way and that the node is at its old config again.
type FailedError struct {
	From, To string
	Cause    error
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("the update from %s to %s failed and was taken back: %v", e.From, e.To, e.Cause)
}
func (e *FailedError) Unwrap() error { return e.Cause }

// Result is what an update did.
type Result struct {
	From, To string
	Changed  []string // paths
	Units    []string // whose enablement changed
	Resumed  bool     // whether it had been begun by a process that was killed
	Back     bool     // whether it was taken back, and why
	Reason   string
}

// NeedsReboot tells whether running programs may hold on to what was there before: everything but SSH keys is read once.
func (r *Result) NeedsReboot() bool {
	return len(r.Units) > 0 || slices.ContainsFunc(r.Changed, func(name string) bool { return !strings.Contains(name, "/.ssh/") })
}

// Open takes the node for this process and gives it back with close. It finishes or takes back an update that was cut; the
// result is nil when there was none.
func (u *Updater) Open(ctx context.Context) (resumed *Result, closeNode func(), err error) {
	if u.Log == nil {
		u.Log = slog.New(slog.DiscardHandler)
	}
	if err := u.Node.MkdirAll(Dir, 0o700); err != nil {
		return nil, nil, err
	}
	unlock, err := u.Node.Lock(Dir)
	if err != nil {
		return nil, nil, err
	}
	err = u.bornAnew()
	if err == nil {
		resumed, err = u.resume(ctx)
	}
	if err == nil {
		err = u.adopt()
	}
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return resumed, unlock, nil
}

// Update brings the node to a config. A nil error means that it is there, on stable storage.
func (u *Updater) Update(ctx context.Context, to *snapshot.Snapshot) (*Result, error) {
	if _, err := u.resume(ctx); err != nil {
		return nil, err
	}
	from, err := u.Current()
	if err != nil {
		return nil, err
	}
	j, err := u.prepare(ctx, from, to)
	if err != nil {
		return nil, err
	}
	u.Log.Info("updating", "from", from.Name(), "to", to.Name(), "paths", len(j.Actions), "units", len(j.Units))
	return u.finish(ctx, j)
}

// plan works out an update. It reads the node and writes nothing.
func (u *Updater) plan(ctx context.Context, from, to *snapshot.Snapshot) (*planner, error) {
	accounts, err := desired.ReadAccounts(u.Node)
	if err != nil {
		return nil, err
	}
	fromTree, err := desired.Of(from, accounts)
	if err != nil {
		return nil, err
	}
	toTree, err := desired.Of(to, accounts)
	if err != nil {
		return nil, err
	}
	if changes := desired.Unreconcilable(fromTree, toTree); len(changes) > 0 {
		return nil, &UnreconcilableError{from.Name(), to.Name(), changes}
	}
	p := &planner{ctx: ctx, node: u.Node, units: u.Units, from: fromTree, to: toTree, overlays: overlayPaths(from), becomes: map[string]bool{}}
	if noted, err := u.readOtherwise(from.Digest()); err != nil {
		return nil, err
	} else if noted != nil {
		p.noted = *noted
	}
	p.journal = &journal{From: name{from.Name(), from.Digest()}, To: name{to.Name(), to.Digest()}, BootID: u.BootID}
	if err := p.plan(); err != nil {
		return nil, fmt.Errorf("planning the update from %s to %s: %w", from.Name(), to.Name(), err)
	}
	return p, nil
}

// prepare plans an update and writes down all that it takes to do it and to take it back. The journal comes last: without
// one nothing has begun.
func (u *Updater) prepare(ctx context.Context, from, to *snapshot.Snapshot) (*journal, error) {
	p, err := u.plan(ctx, from, to)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{blobsDir, originalsDir} {
		if err := u.Node.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	kept := blobs{u.Node, blobsDir}
	for _, action := range p.journal.Actions {
		if err := errors.Join(kept.put(action.Before), kept.put(action.After)); err != nil {
			return nil, err
		}
	}
	for _, original := range p.journal.Originals {
		if err := kept.put(original.State); err != nil {
			return nil, err
		}
	}
	// What was served newer than rendered stays so until the config itself changes the file.
	target := to.WithOverlays(stillOverlaid(from, p.from, p.to))
	for path, sealed := range map[string][]byte{targetPath: target.Bytes(), originPath: from.Bytes(), currentPath: from.Bytes()} {
		if err := u.Node.WriteFile(path, sealed, 0o600); err != nil {
			return nil, err
		}
	}
	if err := writeJSON(u.Node, journalPath, p.journal); err != nil {
		return nil, err
	}
	return p.journal, nil
}

func stillOverlaid(from *snapshot.Snapshot, fromTree, toTree *desired.Tree) []snapshot.Overlay {
	var still []snapshot.Overlay
	for _, overlay := range from.Overlays() {
		name := path.Clean(overlay.Path)
		if entry, wanted := toTree.Entries[name]; wanted && entry.Same(fromTree.Entries[name]) {
			still = append(still, overlay)
		}
	}
	return still
}
