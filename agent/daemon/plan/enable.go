// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/mcsnap/mcsnap/agent/daemon/tree"
	"github.com/mcsnap/mcsnap/agent/daemon/units"
	"github.com/mcsnap/mcsnap/agent/daemon/wanted"
)

// enable plans the links that enable units, as systemd would make them on a first boot from the new config: Ignition
// says in a preset which units are enabled, and systemd then acts on all presets.
func (m *maker) enable() error {
	if err := m.preset(); err != nil {
		return err
	}
	wants, gone := map[string]string{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(union(m.old.Units, m.new.Units))) {
		before, was := m.old.Units[name]
		after, is := m.new.Units[name]
		if was && is && before.Enabled == nil && after.Enabled == nil {
			continue // whether it is enabled is nobody's business
		}
		made, err := units.Links(disk{m.Root}, name)
		if err != nil {
			return err
		}
		making, err := units.Links(m.view, name)
		if err != nil {
			return err
		}
		enabled, err := units.Preset(m.view, name)
		if err != nil {
			return err
		}
		exists, err := m.exists(name)
		if err != nil {
			return err
		}
		if after.Masked() {
			// A mask is stronger than any link. Those that the old config made go, the image's own stay.
			if before.Enabled == nil || !*before.Enabled || enabled && after.Enabled == nil {
				continue
			}
		} else if !enabled || !exists {
			enabling, err := units.Enabling(m.view, name)
			if err != nil {
				return err
			}
			for _, link := range enabling {
				gone[link] = true
			}
			making = nil
		}
		for link := range made {
			gone[link] = true
		}
		maps.Copy(wants, making)
	}
	for link := range gone {
		if _, wanted := wants[link]; wanted {
			continue
		}
		if err := m.unlink(link); err != nil {
			return err
		}
	}
	for link, target := range wants {
		if err := m.link(link, target); err != nil {
			return err
		}
	}
	return nil
}

// preset keeps Ignition's preset file true.
func (m *maker) preset() error {
	// Rules of units that nothing changes for stay as Ignition wrote them.
	rules := map[string]*bool{}
	for name := range union(m.old.Units, m.new.Units) {
		before, after := m.old.Units[name].Enabled, m.new.Units[name].Enabled
		if (before == nil) != (after == nil) || before != nil && *before != *after {
			rules[name] = after
		}
	}
	if len(rules) == 0 {
		return nil
	}
	is, text, err := m.view.Read(units.IgnitionPreset)
	if err != nil {
		return err
	}
	edited := units.EditPreset(text, rules)
	switch {
	case string(edited) == string(text):
	case len(edited) == 0:
		m.set(units.IgnitionPreset, tree.Nothing, nil)
	default:
		after := tree.State{Kind: tree.File, Mode: 0o644, SHA256: tree.Sum(edited)}
		if is.Kind == tree.File {
			after.Mode, after.UID, after.GID = is.Mode, is.UID, is.GID
		}
		if err := m.parents(units.IgnitionPreset, want{}); err != nil {
			return err
		}
		m.set(units.IgnitionPreset, after, edited)
	}
	return nil
}

// exists tells whether a unit, or the template it is an instance of, will have a file.
func (m *maker) exists(unit string) (bool, error) {
	names := []string{unit}
	if before, after, is := strings.Cut(unit, "@"); is {
		names = append(names, before+"@"+path.Ext(after))
	}
	for _, name := range names {
		for _, folder := range units.Folders {
			is, _, err := m.view.Read(path.Join(folder, name))
			if err != nil || is.Kind != tree.Absent {
				return is.Kind != tree.Absent, err
			}
		}
	}
	return false, nil
}

// unlink plans that a link goes, if it is one.
func (m *maker) unlink(link string) error {
	is, _, err := m.view.Read(link)
	if err != nil || is.Kind != tree.Link {
		return err
	}
	place, err := m.view.key(link)
	if err == nil {
		m.set(place, tree.Nothing, nil)
	}
	return err
}

// link plans that a link is there. One to the same unit by another way is as good.
func (m *maker) link(link, target string) error {
	is, _, err := m.view.Read(link)
	if err != nil || is.Kind == tree.Link && path.Base(is.Target) == path.Base(target) {
		return err
	}
	place, err := m.view.key(link)
	if err != nil {
		return err
	}
	if is.Kind != tree.Absent && is.Kind != tree.Link {
		return &ConflictError{place, "something other than a link stands where the link that enables a unit goes; remove it"}
	}
	if err := m.parents(place, want{}); err != nil {
		return err
	}
	m.set(place, tree.State{Kind: tree.Link, Target: target}, nil)
	return nil
}

func union(a, b map[string]wanted.Unit) map[string]bool {
	names := map[string]bool{}
	for name := range a {
		names[name] = true
	}
	for name := range b {
		names[name] = true
	}
	return names
}
