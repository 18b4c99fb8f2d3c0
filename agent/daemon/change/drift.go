// SPDX-License-Identifier: Apache-2.0

package change

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/mcsnap/mcsnap/agent/daemon/desired"
	"github.com/mcsnap/mcsnap/snapshot"
)

// Drift lists what of the node's config is no longer on the node as the config has it, a line for each path or unit. What
// was served newer than rendered differs on purpose and is not listed.
func (u *Updater) Drift(ctx context.Context) ([]string, error) { return u.drift(ctx, true) }

// Differences is Drift for those who only look: nothing is written.
func (u *Updater) Differences(ctx context.Context) ([]string, error) { return u.drift(ctx, false) }

func (u *Updater) drift(ctx context.Context, note bool) ([]string, error) {
	s, tree, err := u.at()
	if err != nil {
		return nil, err
	}
	overlays := overlayPaths(s)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(tree.Entries)) {
		entry := tree.Entries[name]
		if overlays[name] || entry.Problem != "" {
			continue
		}
		is, err := read(u.Node, name)
		if err == nil {
			err = straight(u.Node, name)
		}
		if err != nil {
			lines = append(lines, err.Error())
			continue
		}
		if how := differs(is, entry); how != "" {
			lines = append(lines, name+" "+how)
		}
	}
	ofUnits, err := u.unitDrift(ctx, s, tree, note)
	return append(lines, ofUnits...), err
}

// at is the config that the node is at, and what it wants on this node.
func (u *Updater) at() (*snapshot.Snapshot, *desired.Tree, error) {
	s, err := u.Current()
	if err != nil {
		return nil, nil, err
	}
	accounts, err := desired.ReadAccounts(u.Node)
	if err != nil {
		return nil, nil, err
	}
	tree, err := desired.Of(s, accounts)
	return s, tree, err
}

// differs says in which way a path is not as an entry wants it, "" when it is.
func differs(is State, want desired.Entry) string {
	switch {
	case is.Kind == absent:
		return "is missing"
	case want.Link != "":
		if is.Kind != link || is.Target != want.Link {
			return "is not the link to " + want.Link
		}
		return ""
	case is.Kind != file:
		return "is no file"
	case want.Whole && !bytes.Equal(is.content, slices.Concat(want.Content, want.Append)):
		return "has other content"
	case !want.Whole && !bytes.HasSuffix(is.content, want.Append):
		return "does not end with what is appended to it"
	case want.Mode != nil && is.Mode != *want.Mode:
		return fmt.Sprintf("has mode %04o, want %04o", posix(is), posix(State{Mode: *want.Mode}))
	case (want.Whole || want.UID != nil) && is.UID != number(want.UID, 0), (want.Whole || want.GID != nil) && is.GID != number(want.GID, 0):
		return fmt.Sprintf("belongs to %d:%d, want %d:%d", is.UID, is.GID, number(want.UID, 0), number(want.GID, 0))
	}
	return ""
}
