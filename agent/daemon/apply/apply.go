// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"syscall"

	"github.com/mcsnap/mcsnap/agent/daemon/plan"
	"github.com/mcsnap/mcsnap/agent/daemon/tree"
	"github.com/mcsnap/mcsnap/snapshot"
)

// journal is a plan under way.
type journal struct {
	From    Ref         `json:"from"`
	To      Ref         `json:"to"`
	Back    bool        `json:"back,omitempty"`    // what was done is being taken back
	Problem string      `json:"problem,omitempty"` // why
	Steps   []plan.Step `json:"steps"`
	Next    Record      `json:"next"` // the record once all is done
}

// RolledBackError says that a plan failed and that the node is what it was before.
type RolledBackError struct {
	From, To Ref
	Problem  string // of which path; no contents
}

func (e *RolledBackError) Error() string {
	return fmt.Sprintf("%s could not be applied: %s; everything was put back, the node runs %s as before", e.To.Name, e.Problem, e.From.Name)
}

// StuckError says that a plan failed and that taking it back failed too. It is tried again.
type StuckError struct {
	From, To Ref
	Problem  string
	Cause    error
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("%s could not be applied (%s), and putting %s back failed at %v; it is tried again", e.To.Name, e.Problem, e.From.Name, e.Cause)
}

func (e *StuckError) Unwrap() error { return e.Cause }

// Apply carries a plan out and makes next the record. When it returns nil the node is what to asks for and that is on
// stable storage. The error is a [RolledBackError], a [StuckError], the context's (the plan stays under way and Resume
// goes on with it), or one that says that nothing was begun.
func (s *Store) Apply(ctx context.Context, p *plan.Plan, from Ref, to *snapshot.Snapshot, next Record) error {
	if err := s.KeepBlobs(p.Blobs); err != nil {
		return err
	}
	if err := s.KeepSnapshot(to); err != nil {
		return err
	}
	j := &journal{From: from, To: RefOf(to), Steps: p.Steps, Next: next}
	if err := s.save(journalPath, j); err != nil {
		return err
	}
	return s.run(ctx, j)
}

// Resume goes on with a plan that was cut. It returns whether there was one; the error is Apply's.
func (s *Store) Resume(ctx context.Context) (was bool, err error) {
	j := &journal{}
	found, err := s.load(journalPath, maxJournal, j)
	if err != nil || !found {
		return false, err
	}
	return true, s.run(ctx, j)
}

// run carries a journal out, forward unless it says back.
func (s *Store) run(ctx context.Context, j *journal) error {
	if err := s.sweep(j); err != nil {
		return err
	}
	if !j.Back {
		err := s.forward(ctx, j)
		if err == nil {
			return s.commit(j)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		j.Back, j.Problem = true, err.Error()
		// A disk on which this cannot be written may still let everything be put back. If it is cut on the way, the next
		// start tries to go forward again, which is as whole.
		_ = s.save(journalPath, j)
	}
	if err := s.backward(j); err != nil {
		return &StuckError{j.From, j.To, j.Problem, err}
	}
	return &RolledBackError{j.From, j.To, j.Problem}
}

// sweep removes the half-written files of a run that was killed.
func (s *Store) sweep(j *journal) error {
	swept := map[string]bool{}
	for _, step := range j.Steps {
		dir := path.Dir(step.Path)
		if swept[dir] {
			continue
		}
		swept[dir] = true
		if is, err := tree.Look(s.node, dir); err != nil || is.Kind != tree.Folder {
			continue
		}
		if err := s.node.Sweep(dir); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) forward(ctx context.Context, j *journal) error {
	for _, step := range j.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := tree.Ensure(s.node, step.Path, step.After, s)
		if err != nil && !(step.IfEmpty && errors.Is(err, syscall.ENOTEMPTY)) {
			return err
		}
	}
	// Nothing is called done that was not looked at.
	for _, step := range j.Steps {
		is, err := tree.Look(s.node, step.Path)
		if err != nil {
			return err
		}
		if is != step.After && !step.IfEmpty {
			return fmt.Errorf("%s: something changed it meanwhile", step.Path)
		}
	}
	return nil
}

func (s *Store) backward(j *journal) error {
	if err := s.sweep(j); err != nil { // of the write that failed: its folder may have to go
		return err
	}
	for _, step := range slices.Backward(j.Steps) {
		err := tree.Ensure(s.node, step.Path, step.Before, s)
		// A folder that was made for the plan and that somebody has put something into stays.
		made := step.After.Kind == tree.Folder && step.Before.Kind == tree.Absent
		if err != nil && !(made && errors.Is(err, syscall.ENOTEMPTY)) {
			return err
		}
	}
	record, err := s.Record()
	if err != nil {
		return err
	}
	return s.finish(record)
}

func (s *Store) commit(j *journal) error {
	if err := s.SetRecord(j.Next); err != nil {
		return err
	}
	return s.finish(&j.Next)
}

// finish ends a plan: from here on it is neither resumed nor taken back. Nobody needs to know that litter could not be
// removed: the next plan's end tries again.
func (s *Store) finish(record *Record) error {
	if err := s.node.Remove(journalPath); err != nil {
		return err
	}
	_ = s.collect(record)
	return nil
}
