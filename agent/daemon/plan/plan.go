// SPDX-License-Identifier: Apache-2.0

// Package plan turns the difference of two configs, and what is on the node's disk, into steps; and tells what a config
// has on disk when nothing has drifted. It reads the node and changes nothing.
package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mcsnap/mcsnap/agent/daemon/tree"
	"github.com/mcsnap/mcsnap/agent/daemon/wanted"
	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
)

// Facts are what is known of a node besides its configs.
type Facts struct {
	Root     *root.Root
	Overlays []snapshot.Overlay // files served newer than rendered: left alone

	// Originals are what stood at the paths of the current config before it (and its forerunners) took them.
	Originals map[string]tree.State
	// Folders are those the daemon made for the current config's files.
	Folders []string
	// Contents of the originals.
	Contents tree.Contents
}

// Step makes one path of the node another thing.
type Step struct {
	Path   string     `json:"path"`
	Before tree.State `json:"before"`
	After  tree.State `json:"after"`
	// IfEmpty is for folders that go: one that somebody has put something into meanwhile stays.
	IfEmpty bool `json:"ifEmpty,omitempty"`
}

// Plan is how a node gets from what it is to a config.
type Plan struct {
	Steps []Step
	// Blobs are the contents of all states that the steps and Originals name, by digest.
	Blobs map[string][]byte
	// Originals and Folders are the node's facts once the plan is done.
	Originals map[string]tree.State
	Folders   []string
	// Units tells that systemd has to read its files again, Reboot that only a reboot has every change take effect.
	Units, Reboot bool
}

// ConflictError says that something of the node's own stands where a config wants a file. Nothing has been touched.
type ConflictError struct{ Path, Problem string }

func (e *ConflictError) Error() string { return e.Path + ": " + e.Problem }

// Make plans the way from old to new. The error is a [wanted.UnreconcilableError], [wanted.InvalidError],
// [ConflictError], or one of reading the node.
func Make(old, new *wanted.Config, facts Facts) (*Plan, error) {
	if err := wanted.Check(old, new); err != nil {
		return nil, err
	}
	m := &maker{
		Facts: facts, old: old, new: new,
		view:      &view{node: facts.Root, planned: map[string]planned{}},
		plan:      &Plan{Blobs: map[string][]byte{}, Originals: map[string]tree.State{}, Folders: slices.Clone(facts.Folders)},
		overlaid:  map[string]bool{},
		oldPlaces: map[string]bool{},
	}
	for _, overlay := range facts.Overlays {
		m.overlaid[overlay.Path] = true
	}
	for _, step := range []func() error{m.read, m.remove, m.write, m.enable, m.sweep, m.order} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return m.plan, nil
}

// Add puts a file of the daemon's own into the plan, owned by root.
func (p *Plan) Add(node *root.Root, name string, data []byte, mode tree.State) error {
	before, was, err := tree.Read(node, name)
	if err != nil {
		return err
	}
	after := tree.State{Kind: tree.File, Mode: mode.Mode, UID: mode.UID, GID: mode.GID, SHA256: tree.Sum(data)}
	if before == after {
		return nil
	}
	p.keep(before, was)
	p.keep(after, data)
	p.Steps = append(p.Steps, Step{Path: name, Before: before, After: after})
	return nil
}

func (p *Plan) keep(state tree.State, data []byte) {
	if state.Kind == tree.File {
		p.Blobs[state.SHA256] = data
	}
}

type maker struct {
	Facts
	old, new           *wanted.Config
	view               *view
	plan               *Plan
	overlaid           map[string]bool
	oldWants, newWants map[string]want // by place
	oldPlaces          map[string]bool
	reboot             bool
}

// read finds out what both configs have on disk.
func (m *maker) read() (err error) {
	e := &expecter{facts: m.Facts, places: map[string]want{}}
	if m.oldWants, err = e.all(m.old); err != nil {
		return err
	}
	e = &expecter{facts: m.Facts, places: map[string]want{}, before: m.oldWants}
	m.newWants, err = e.all(m.new)
	return err
}

// set plans a state for a place.
func (m *maker) set(place string, state tree.State, data []byte) {
	m.view.planned[place] = planned{state, data}
}

// original is what stands, or stood, at a place that the config does not own.
func (m *maker) original(place string) (tree.State, []byte, error) {
	e := &expecter{facts: m.Facts, before: m.oldWants}
	return e.original(place)
}

// remove plans what becomes of the places that only the old config owns.
func (m *maker) remove() error {
	for _, place := range slices.Sorted(maps.Keys(m.oldWants)) {
		if _, still := m.newWants[place]; still || m.overlaid[m.oldWants[place].name] {
			continue
		}
		state, data, err := m.original(place)
		if err != nil {
			return err
		}
		m.set(place, state, data)
	}
	return nil
}

// write plans the places that the new config owns.
func (m *maker) write() error {
	for _, place := range slices.Sorted(maps.Keys(m.newWants)) {
		w := m.newWants[place]
		was, owned := m.oldWants[place]
		original, data, err := m.original(place)
		if err != nil {
			return err
		}
		if !w.unmask {
			m.plan.Originals[place] = original
			m.plan.keep(original, data)
		}
		switch {
		case w.remote: // unchanged, or Check had refused it
			continue
		case m.overlaid[w.name] && owned && was.same(w):
			continue
		case w.unmask:
			if is, _, err := m.view.Read(place); err != nil {
				return err
			} else if is.Kind == tree.Link && is.Target == "/dev/null" {
				m.set(place, tree.Nothing, nil)
			}
			continue
		}
		is, _, err := m.view.Read(place)
		if err != nil {
			return err
		}
		if err := m.replaceable(place, w, is, owned); err != nil {
			return err
		}
		if err := m.parents(place, w); err != nil {
			return err
		}
		m.set(place, w.State, w.data)
	}
	return nil
}

// replaceable refuses what Ignition would refuse on a fresh node too.
func (m *maker) replaceable(place string, w want, is tree.State, owned bool) error {
	switch {
	case is == w.State || is.Kind == tree.Absent:
		return nil
	case is.Kind == tree.Other:
		return &ConflictError{place, "a device, socket or pipe stands where the config has a file; remove it"}
	case is.Kind == tree.Folder:
		if names, err := m.view.Names(place); err != nil || len(names) > 0 {
			return &ConflictError{place, "a folder stands where the config has a file; remove it, or choose another path"}
		}
	case !owned && !w.overwrite:
		return &ConflictError{place, "a file that no config put there stands where the config has one, and overwrite is not true; set overwrite, or remove the file"}
	}
	return nil
}

// parents plans the folders above a place that are missing.
func (m *maker) parents(place string, w want) error {
	for _, dir := range ancestors(place) {
		is, _, err := m.view.Read(dir)
		if err != nil {
			return err
		}
		switch is.Kind {
		case tree.Folder:
			continue
		case tree.Absent:
			folder := tree.State{Kind: tree.Folder, Mode: 0o755}
			if w.home != "" && below(dir, w.home) {
				folder.Mode, folder.UID, folder.GID = 0o700, w.UID, w.GID
			}
			m.set(dir, folder, nil)
			if !slices.Contains(m.plan.Folders, dir) {
				m.plan.Folders = append(m.plan.Folders, dir)
			}
		default:
			return &ConflictError{place, fmt.Sprintf("%s is no folder; remove it, or choose another path", dir)}
		}
	}
	return nil
}
