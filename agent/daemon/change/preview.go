// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/snapshot"
)

// Plan is what an update would change on this node. It holds no content of any file.
type Plan struct {
	From           string          `json:"from"` // names of the rendered configs
	FromDigest     snapshot.Digest `json:"fromDigest"`
	To             string          `json:"to"`
	ToDigest       snapshot.Digest `json:"toDigest"`
	Paths          []PlannedPath   `json:"paths"`
	Units          []PlannedUnit   `json:"units"`
	Reboot         bool            `json:"reboot"`                   // whether running programs may hold on to what was there before
	Unreconcilable []string        `json:"unreconcilable,omitempty"` // what a running node cannot be brought to: nothing is changed
}

// PlannedPath is the change of one path.
type PlannedPath struct {
	Path string `json:"path"`
	Do   string `json:"do"`  // create, change or remove
	How  string `json:"how"` // in which respects, for people
}

// PlannedUnit is the change of one unit's enablement.
type PlannedUnit struct {
	Name string `json:"name"`
	Do   string `json:"do"` // disable; preset: as the preset files say, which the config's enabled is written into
}

// Plan works out what an update to a config would change. Nothing is written, and the node need not have been opened.
func (u *Updater) Plan(ctx context.Context, to *snapshot.Snapshot) (*Plan, error) {
	if cut, err := u.Cut(); err != nil {
		return nil, err
	} else if cut != nil {
		return nil, fmt.Errorf("%s: the update from %s to %s is under way or was cut, and is ended first; have mcsnap-daemon run, and ask again", journalPath, cut.From, cut.To)
	}
	from, err := u.Current()
	if err != nil {
		return nil, err
	}
	plan := &Plan{From: from.Name(), FromDigest: from.Digest(), To: to.Name(), ToDigest: to.Digest(), Paths: []PlannedPath{}, Units: []PlannedUnit{}}
	if from.Name() == to.Name() { // the daemon compares names too
		return plan, nil
	}
	p, err := u.plan(ctx, from, to)
	if refused, is := errors.AsType[*UnreconcilableError](err); is {
		plan.Unreconcilable = refused.Changes
		return plan, nil
	}
	if err != nil {
		return nil, err
	}
	for _, dir := range p.journal.Dirs {
		plan.Paths = append(plan.Paths, PlannedPath{dir, "create", "folder"})
	}
	for _, a := range p.journal.Actions {
		plan.Paths = append(plan.Paths, a.planned())
	}
	for _, unit := range p.journal.Units {
		do := "preset"
		if !unit.On {
			do = "disable"
		}
		if unit.On || unit.Off {
			plan.Units = append(plan.Units, PlannedUnit{unit.Name, do})
		}
	}
	plan.Reboot = p.journal.result().NeedsReboot() && len(p.journal.Actions)+len(p.journal.Units) > 0
	return plan, nil
}

func (a action) planned() PlannedPath {
	switch {
	case a.After.Kind == absent:
		return PlannedPath{a.Path, "remove", string(a.Before.Kind)}
	case a.Before.Kind == absent:
		return PlannedPath{a.Path, "create", described(a.After)}
	case a.Before.Kind != a.After.Kind:
		return PlannedPath{a.Path, "change", string(a.Before.Kind) + " becomes " + described(a.After)}
	case a.Before.Target != a.After.Target:
		return PlannedPath{a.Path, "change", described(a.After)}
	}
	how := ""
	add := func(format string, args ...any) {
		if how != "" {
			how += ", "
		}
		how += fmt.Sprintf(format, args...)
	}
	if a.Before.Blob != a.After.Blob {
		add("content, %d to %d bytes", len(a.Before.content), len(a.After.content))
	}
	if a.Before.Mode != a.After.Mode {
		add("mode %04o to %04o", posix(a.Before), posix(a.After))
	}
	if a.Before.UID != a.After.UID || a.Before.GID != a.After.GID {
		add("owner %d:%d to %d:%d", a.Before.UID, a.Before.GID, a.After.UID, a.After.GID)
	}
	return PlannedPath{a.Path, "change", how}
}

func described(s State) string {
	switch s.Kind {
	case link:
		return "link to " + s.Target
	case file:
		return fmt.Sprintf("file of %d bytes, mode %04o, owner %d:%d", len(s.content), posix(s), s.UID, s.GID)
	}
	return string(s.Kind)
}

// Unfinished is an update that is under way, or was cut.
type Unfinished struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Back   bool   `json:"back"` // whether it is being taken back
	Reason string `json:"reason,omitempty"`
}

// Cut is the update that is under way or was cut, nil when there is none.
func (u *Updater) Cut() (*Unfinished, error) {
	text, err := u.Node.ReadFile(journalPath, maxJournal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var j journal
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, fmt.Errorf("%s: %w; the disk lost it: provision the node again", journalPath, err)
	}
	return &Unfinished{j.From.Name, j.To.Name, j.Back, j.Reason}, nil
}

// Source is the file that Current takes the config from.
func (u *Updater) Source(current *snapshot.Snapshot) string {
	for _, name := range []string{currentPath, snapshot.Path} {
		if s, _, err := u.open(name); err == nil && s.Digest() == current.Digest() {
			return name
		}
	}
	return path.Clean(handoff.CurrentPath)
}
