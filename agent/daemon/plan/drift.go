// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"path"
	"slices"

	"github.com/mcsnap/mcsnap/agent/daemon/tree"
	"github.com/mcsnap/mcsnap/agent/daemon/units"
	"github.com/mcsnap/mcsnap/agent/daemon/wanted"
)

// Drift is one path that is not as the config has it.
type Drift struct {
	Path    string
	Problem string // "missing", "changed", …: never what the file holds
}

func (d Drift) String() string { return d.Path + " (" + d.Problem + ")" }

// Drifted lists the paths of the config on disk that are not as the config has them. Overlays are left out: they differ
// on purpose.
func Drifted(config *wanted.Config, facts Facts) ([]Drift, error) {
	e := &expecter{facts: facts, places: map[string]want{}}
	wants, err := e.all(config)
	if err != nil {
		return nil, err
	}
	for _, overlay := range facts.Overlays {
		maps.DeleteFunc(wants, func(_ string, w want) bool { return w.name == overlay.Path })
	}
	var drifted []Drift
	for _, place := range slices.Sorted(maps.Keys(wants)) {
		w := wants[place]
		is, data, err := tree.Read(facts.Root, place)
		if err != nil {
			return nil, err
		}
		if problem := w.compare(is, data); problem != "" {
			drifted = append(drifted, Drift{w.name, problem})
		}
	}
	links, err := driftedLinks(config, facts)
	return append(drifted, links...), err
}

// compare tells what is wrong with what stands at a place, "" for nothing.
func (w want) compare(is tree.State, data []byte) string {
	switch {
	case w.unmask && is.Kind == tree.Link && is.Target == "/dev/null":
		return "masked"
	case w.unmask:
		return ""
	case is.Kind == tree.Absent:
		return "missing"
	case w.remote && (is.Kind != tree.File || w.hash != "" && !wanted.Matches(data, w.hash)):
		return "changed"
	case w.remote, is == w.State:
		return ""
	case is.Kind != w.Kind:
		return "it is a " + string(is.Kind) + " now"
	case is.SHA256 != w.SHA256, is.Target != w.Target:
		return "changed"
	case is.UID != w.UID, is.GID != w.GID:
		return "another owner"
	}
	return "another mode"
}

// driftedLinks looks at the units of which the config says whether they are enabled.
func driftedLinks(config *wanted.Config, facts Facts) (drifted []Drift, err error) {
	on := disk{facts.Root}
	for _, name := range slices.Sorted(maps.Keys(config.Units)) {
		if config.Units[name].Enabled == nil {
			continue
		}
		enabled, err := units.Preset(on, name)
		if err != nil {
			return nil, err
		}
		if !*config.Units[name].Enabled {
			if enabled {
				continue // Ignition says nothing of a unit that was not enabled then, and this distribution enables it
			}
			enabling, err := units.Enabling(on, name)
			if err != nil {
				return nil, err
			}
			for _, link := range enabling {
				drifted = append(drifted, Drift{link, "the unit was enabled"})
			}
			continue
		}
		links, err := units.Links(on, name)
		if err != nil {
			return nil, err
		}
		for _, link := range slices.Sorted(maps.Keys(links)) {
			is, err := tree.Look(facts.Root, link)
			if err != nil {
				return nil, err
			}
			if enabled && (is.Kind != tree.Link || path.Base(is.Target) != path.Base(links[link])) {
				drifted = append(drifted, Drift{link, "the unit was disabled"})
			}
		}
	}
	return drifted, nil
}

// Adopt is what a daemon has to know of a node before the first change: what stood at the paths of the config it was
// born with, as far as that can be told.
func Adopt(config *wanted.Config, facts Facts) (originals map[string]tree.State, blobs map[string][]byte, err error) {
	p, err := Make(config, config, facts)
	if err != nil {
		return nil, nil, err
	}
	return p.Originals, p.Blobs, nil
}
