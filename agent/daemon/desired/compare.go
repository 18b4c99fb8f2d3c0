// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
)

// Same tells whether two entries want the same of their path.
func (e Entry) Same(other Entry) bool {
	return e.Path == other.Path && e.Link == other.Link && e.Whole == other.Whole && bytes.Equal(e.Content, other.Content) &&
		bytes.Equal(e.Append, other.Append) && equal(e.Mode, other.Mode) && equal(e.UID, other.UID) && equal(e.GID, other.GID) &&
		e.Problem == other.Problem
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// Unreconcilable lists what differs between two configs and cannot be brought about on a running node, a line each.
// Nothing may be touched when the list is not empty.
func Unreconcilable(from, to *Tree) []string {
	var lines []string
	fields := maps.Clone(from.Other)
	maps.Copy(fields, to.Other)
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if !reflect.DeepEqual(from.Other[field], to.Other[field]) {
			lines = append(lines, field+" changed")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(to.Entries)) {
		entry := to.Entries[name]
		if entry.Problem != "" && !entry.Same(from.Entries[name]) {
			lines = append(lines, fmt.Sprintf("%s: %s", name, entry.Problem))
		}
		if reason := Forbidden(name); reason != "" && !entry.Same(from.Entries[name]) {
			lines = append(lines, fmt.Sprintf("%s: %s", name, reason))
		}
	}
	return lines
}

// Forbidden says why a path must not be written by a config's update, "" when it may.
func Forbidden(name string) string {
	for _, own := range []string{"/var/lib/mcsnap", "/etc/mcd-snapshot.json", "/etc/machine-config-daemon"} {
		if name == own || strings.HasPrefix(name, own+"/") {
			return "it is this daemon's own"
		}
	}
	switch top, _, _ := strings.Cut(strings.TrimPrefix(path.Clean(name), "/"), "/"); top {
	case "proc", "sys", "dev", "run", "tmp", "boot", "sysroot":
		return "it is not on the root's own disk"
	case "usr":
		if !strings.HasPrefix(name, "/usr/local/") {
			return "/usr is the OS image's"
		}
	}
	return ""
}
