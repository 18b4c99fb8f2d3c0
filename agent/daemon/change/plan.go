// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/mcsnap/mcsnap/agent/daemon/desired"
	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
)

// action is the change of one path.
type action struct {
	Path   string `json:"path"`
	Before State  `json:"before"`
	After  State  `json:"after"`
}

// unitChange is the change of one unit's enablement.
type unitChange struct {
	Name string `json:"name"`
	Was  bool   `json:"was"` // enabled before
	Off  bool   `json:"off"` // disabled while its old file is still there
	On   bool   `json:"on"`  // given to the presets once its new file is there
}

// journal is an update from its first change to its last: enough to finish it or to take it back, whoever finds it.
type journal struct {
	From      name         `json:"from"`
	To        name         `json:"to"`
	Back      bool         `json:"back"` // whether it is being taken back
	Reason    string       `json:"reason,omitempty"`
	Actions   []action     `json:"actions"`
	Units     []unitChange `json:"units"`
	Originals []original   `json:"originals"` // what is kept of the image's files from now on
	Replaced  []original   `json:"replaced"`  // what was kept in their stead until now
	Forget    []string     `json:"forget"`    // paths that are no longer kept, once the update is done
	Dirs      []string     `json:"dirs"`      // folders it makes, outermost first
	BootID    string       `json:"bootID"`
}

type name struct {
	Name   string          `json:"name"`
	Digest snapshot.Digest `json:"digest"`
}

// PresetPath is where Ignition writes which units are enabled, for systemd's first boot.
const PresetPath = "/etc/systemd/system-preset/20-ignition.preset"

// planner works out what is to be changed. It reads the node and changes nothing.
type planner struct {
	ctx      context.Context
	node     *root.Root
	units    Units
	from, to *desired.Tree
	overlays map[string]bool // paths that were served newer than rendered
	noted    otherwise
	journal  *journal

	becomes map[string]bool // files in whose place a folder comes
	late    []action        // what can be done only when everything in a folder is gone
}

func (p *planner) plan() error {
	names := map[string]bool{}
	for name := range p.from.Entries {
		names[name] = true
	}
	for name := range p.to.Entries {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := p.path(name); err != nil {
			return err
		}
	}
	p.journal.Actions = append(p.journal.Actions, p.late...)
	return p.enablement()
}

// path plans one path.
func (p *planner) path(name string) error {
	was, owned := p.from.Entries[name]
	wanted, wants := p.to.Entries[name]
	unchanged := owned && wants && was.Same(wanted)
	if unchanged && (p.overlays[name] || wanted.Problem != "" || !wanted.Whole && wanted.Link == "") {
		return nil
	}
	if err := straight(p.node, name); err != nil {
		return err
	}
	if !unchanged && wants {
		if err := onItsDisk(p.node, name); err != nil {
			return err
		}
	}
	before, err := read(p.node, name)
	if err != nil {
		return err
	}
	after, err := p.after(name, before)
	if err != nil {
		return err
	}
	if !wants && p.holds(name) {
		return p.becomesFolder(name, before, after)
	}
	if before.Kind == folder {
		return p.replacesFolder(name, before, after)
	}
	if wants && !owned && wanted.Whole && !wanted.Overwrite && before.Kind != absent && !before.same(after) {
		return fmt.Errorf("%s: a file that no config put there stands where the config has one, and overwrite is not true; set overwrite in the config, or remove the file", name)
	}
	if !owned {
		if err := p.keep(original{Path: name, State: before}); err != nil {
			return err
		}
	}
	if !wants {
		p.journal.Forget = append(p.journal.Forget, name)
	}
	if before.same(after) {
		return nil
	}
	p.journal.Actions = append(p.journal.Actions, action{name, before, after})
	if after.Kind != absent {
		return p.folders(path.Dir(name))
	}
	return nil
}

// keep notes what a path is on the image, and what was kept of it until now.
func (p *planner) keep(o original) error {
	before, err := originalOf(p.node, o.Path)
	if err != nil {
		return err
	}
	if before != nil {
		p.journal.Replaced = append(p.journal.Replaced, *before)
	}
	p.journal.Originals = append(p.journal.Originals, o)
	return nil
}

// after is what a path is to be.
func (p *planner) after(name string, before State) (State, error) {
	wanted, wants := p.to.Entries[name]
	switch {
	case !wants:
		return p.base(name, before)
	case wanted.Link != "":
		return State{Kind: link, Target: wanted.Link}, nil
	case wanted.Whole:
		return fileState(slices.Concat(wanted.Content, wanted.Append), *wanted.Mode, number(wanted.UID, 0), number(wanted.GID, 0)), nil
	}
	base, err := p.base(name, before)
	if err != nil {
		return State{}, err
	}
	if base.Kind != file {
		base = fileState(nil, 0o644, 0, 0)
	}
	mode := base.Mode
	if wanted.Mode != nil {
		mode = *wanted.Mode
	}
	return fileState(slices.Concat(base.content, wanted.Append), mode, number(wanted.UID, base.UID), number(wanted.GID, base.GID)), nil
}

// base is what a path is on the image, without any config: what was kept when this daemon first took it, or what is left
// without the part a config appended, or the image's own copy where an ostree keeps one. Otherwise nothing was there.
func (p *planner) base(name string, before State) (State, error) {
	was, owned := p.from.Entries[name]
	if !owned {
		return before, nil
	}
	kept, err := originalOf(p.node, name)
	if err != nil {
		return State{}, err
	}
	if kept != nil {
		return kept.State, nil
	}
	if !was.Whole && was.Link == "" && before.Kind == file {
		content, whole := withoutSuffix(before.content, was.Append)
		if !whole {
			return State{}, fmt.Errorf("%s does not end with what the config appended, so nothing tells what it was before; put that back", name)
		}
		if len(content) > 0 {
			return fileState(content, before.Mode, before.UID, before.GID), nil
		}
	}
	if rest, inEtc := strings.CutPrefix(name, "/etc/"); inEtc {
		if pristine, err := read(p.node, "/usr/etc/"+rest); err == nil && pristine.Kind != folder {
			return pristine, nil
		}
	}
	return State{Kind: absent}, nil
}

func number(given *int, otherwise int) int {
	if given != nil {
		return *given
	}
	return otherwise
}

func overlayPaths(s *snapshot.Snapshot) map[string]bool {
	paths := map[string]bool{}
	for _, overlay := range s.Overlays() {
		paths[path.Clean(overlay.Path)] = true
	}
	return paths
}
