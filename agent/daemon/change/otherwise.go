// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/mcsnap/mcsnap/agent/daemon/desired"
	"github.com/mcsnap/mcsnap/snapshot"
)

// otherwise are the units that were not as the config has them when it had just been applied: another unit's Also=, or an
// image's own preset or mask, may have it so. They are no work of somebody's hand. Whoever looks for that compares with
// this.
type otherwise struct {
	Digest snapshot.Digest   `json:"digest"` // of the config
	Units  map[string]string `json:"units"`  // unit to its state then
}

const otherwisePath = Dir + "/units.json"

const (
	enablement = "enablement" // enabled and ought not to be, or the other way round
	mask       = "mask"       // masked, and not by the config
)

// by tells in which respect a unit is not as the config has it, "" for none. A unit without a file or an [Install]
// section is as the config has it: systemd does not enable it on a first boot either.
func (o otherwise) by(unit string, wanted bool, state string) string {
	switch {
	case o.Units[unit] == state && state != "disabled": // a unit that can be enabled and is not is never as it should be
		return ""
	case strings.HasPrefix(state, "masked"):
		return mask
	case wanted && state == "disabled", !wanted && isEnabled(state):
		return enablement
	}
	return ""
}

// readOtherwise is what was written down for a config, nil when nothing was.
func (u *Updater) readOtherwise(of snapshot.Digest) (*otherwise, error) {
	text, err := u.Node.ReadFile(otherwisePath, maxJournal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o := &otherwise{}
	if json.Unmarshal(text, o) != nil || o.Digest != of {
		return nil, nil // of another config, or of no use: it is written anew
	}
	return o, nil
}

// note writes it down for the config that the node is at.
func (u *Updater) note(ctx context.Context) error {
	s, tree, err := u.at()
	if err == nil {
		_, err = u.noteOtherwise(ctx, s, tree)
	}
	return err
}

// noteOtherwise writes down which units are not as a config has them, now that it has been applied.
func (u *Updater) noteOtherwise(ctx context.Context, s *snapshot.Snapshot, tree *desired.Tree) (*otherwise, error) {
	o, err := u.otherwiseNow(ctx, s, tree)
	if err != nil {
		return nil, err
	}
	if err := u.Node.MkdirAll(Dir, 0o700); err != nil {
		return nil, err
	}
	return o, writeJSON(u.Node, otherwisePath, o)
}

func (u *Updater) otherwiseNow(ctx context.Context, s *snapshot.Snapshot, tree *desired.Tree) (*otherwise, error) {
	o := &otherwise{Digest: s.Digest(), Units: map[string]string{}}
	for unit, wanted := range tree.Enabled {
		state, err := u.Units.State(ctx, unit)
		if err != nil {
			return nil, err
		}
		if (otherwise{}).by(unit, wanted, state) != "" {
			o.Units[unit] = state
		}
	}
	return o, nil
}

// unitDrift lists the units that somebody enabled, disabled or masked by hand. Units that the config masks are links,
// and found among the files.
func (u *Updater) unitDrift(ctx context.Context, s *snapshot.Snapshot, tree *desired.Tree, note bool) ([]string, error) {
	o, err := u.readOtherwise(s.Digest())
	if err != nil {
		return nil, err
	}
	if o == nil {
		now := u.otherwiseNow
		if note {
			now = u.noteOtherwise
		}
		if o, err = now(ctx, s, tree); err != nil {
			return nil, err
		}
	}
	var lines []string
	for _, unit := range slices.Sorted(maps.Keys(tree.Enabled)) {
		if tree.Entries[path.Join(unitsDir, unit)].Link != "" {
			continue
		}
		state, err := u.Units.State(ctx, unit)
		if err != nil {
			return nil, err
		}
		if o.by(unit, tree.Enabled[unit], state) != "" {
			want := "disabled"
			if tree.Enabled[unit] {
				want = "enabled"
			}
			lines = append(lines, fmt.Sprintf("%s is %s, want it %s", unit, state, want))
		}
	}
	return lines, nil
}
