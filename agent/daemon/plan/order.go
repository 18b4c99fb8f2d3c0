// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/mcsnap/mcsnap/agent/daemon/tree"
	"github.com/mcsnap/mcsnap/agent/daemon/units"
)

// sweep plans that folders go which the plan leaves empty: those that the daemon made, and those of drop-ins and
// enabling links, which nobody else makes. Others stay: something may be watching them.
func (m *maker) sweep() error {
	candidates := map[string]bool{}
	for _, dir := range m.plan.Folders {
		candidates[dir] = true
	}
	for place, p := range m.view.planned {
		dir := path.Dir(place)
		if p.Kind == tree.Absent && path.Dir(dir) == units.Folder && path.Ext(dir) != "" {
			candidates[dir] = true
		}
	}
	m.plan.Folders = slices.DeleteFunc(m.plan.Folders, func(dir string) bool {
		p, is := m.view.planned[dir]
		return is && p.Kind != tree.Folder // a file takes its place
	})
	deepest := slices.SortedFunc(maps.Keys(candidates), func(a, b string) int { return len(b) - len(a) })
	for _, dir := range deepest {
		is, _, err := m.view.Read(dir)
		if err != nil {
			return err
		}
		if is.Kind == tree.Folder {
			names, err := m.view.Names(dir)
			if err != nil {
				return err
			}
			if len(names) > 0 {
				continue
			}
			m.set(dir, tree.Nothing, nil)
		}
		m.plan.Folders = slices.DeleteFunc(m.plan.Folders, func(made string) bool { return made == dir })
	}
	slices.Sort(m.plan.Folders)
	return nil
}

// order makes steps of what is planned and not so on disk: what goes, the deepest first; then what comes, folders before
// what is in them.
func (m *maker) order() error {
	var going, coming []Step
	for _, place := range slices.Sorted(maps.Keys(m.view.planned)) {
		p := m.view.planned[place]
		before, was, err := tree.Read(m.Root, place)
		if err != nil {
			return err
		}
		if before == p.State {
			continue
		}
		m.plan.keep(before, was)
		m.plan.keep(p.State, p.data)
		step := Step{Path: place, Before: before, After: p.State}
		if p.Kind == tree.Absent {
			step.IfEmpty = before.Kind == tree.Folder
			going = append(going, step)
		} else {
			coming = append(coming, step)
		}
		m.effect(place)
	}
	slices.Reverse(going) // a folder's name sorts before those in it
	m.plan.Steps = slices.Concat(going, coming)
	return nil
}

// effect notes what has to follow a change of a place.
func (m *maker) effect(place string) {
	if below(place, "/etc/systemd") {
		m.plan.Units = true
	}
	for _, wants := range []map[string]want{m.oldWants, m.newWants} {
		if wants[place].home != "" {
			return // sshd reads keys when somebody comes
		}
		for _, w := range wants {
			if w.home != "" && below(place, w.home) {
				return // a folder on the way to them
			}
		}
	}
	if place != units.IgnitionPreset {
		m.plan.Reboot = true
	}
}

// Paths are the steps' paths, for a log.
func (p *Plan) Paths() string {
	var paths []string
	for _, step := range p.Steps {
		paths = append(paths, step.Path)
	}
	return strings.Join(paths, " ")
}
