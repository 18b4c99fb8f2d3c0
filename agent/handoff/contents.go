// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// Listing is what a config puts on a node, by digest instead of content, so that it may be shown to anyone.
type Listing struct {
	Files []Listed `json:"files"`
	Units []Listed `json:"units"`
	Users []Listed `json:"users"`
	Other []Listed `json:"other"` // the rest of the spec: kernel arguments, OS image, …
}

// Listed is one entry of a listing. SHA256 is of the content as it lands on disk for files, and of the entry in the
// config for everything else.
type Listed struct {
	Name   string `json:"name"`
	Mode   string `json:"mode,omitempty"` // octal
	Size   int    `json:"size"`
	SHA256 string `json:"sha256,omitempty"` // "" for a file that is not in the config but elsewhere
}

// Empty tells whether the config has no files, units and users: what upstream's first boot leaves of it.
func (l Listing) Empty() bool { return len(l.Files)+len(l.Units)+len(l.Users) == 0 }

// Contents lists what a snapshot's config puts on a node.
func Contents(s *snapshot.Snapshot) Listing {
	var object struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	var config struct {
		Storage struct {
			Files []file `json:"files"`
		} `json:"storage"`
		Systemd struct {
			Units []json.RawMessage `json:"units"`
		} `json:"systemd"`
		Passwd struct {
			Users []json.RawMessage `json:"users"`
		} `json:"passwd"`
	}
	// What has another shape than a config's stays unlisted: it was rendered by somebody else's rules.
	_ = json.Unmarshal(s.MachineConfig(), &object)
	_ = json.Unmarshal(s.IgnitionConfig(), &config)

	listing := Listing{Files: []Listed{}, Units: named(config.Systemd.Units), Users: named(config.Passwd.Users), Other: []Listed{}}
	for _, file := range config.Storage.Files {
		listing.Files = append(listing.Files, file.listed())
	}
	slices.SortFunc(listing.Files, func(a, b Listed) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	for _, key := range slices.Sorted(maps.Keys(object.Spec)) {
		if key != "config" {
			listing.Other = append(listing.Other, listed("spec."+key, object.Spec[key]))
		}
	}
	return listing
}

type file struct {
	Path     string `json:"path"`
	Mode     *int   `json:"mode"`
	Contents struct {
		Source      string `json:"source"`
		Compression string `json:"compression"`
	} `json:"contents"`
}

func (f file) listed() Listed {
	entry := Listed{Name: f.Path}
	if f.Mode != nil {
		entry.Mode = fmt.Sprintf("%04o", *f.Mode)
	}
	content, err := contents.Decode(f.Contents.Source, f.Contents.Compression, contents.MaxInflated)
	if err != nil {
		return entry
	}
	sum := sha256.Sum256(content)
	entry.Size, entry.SHA256 = len(content), hex.EncodeToString(sum[:])
	return entry
}

func named(entries []json.RawMessage) []Listed {
	all := []Listed{}
	for _, entry := range entries {
		var head struct {
			Name string `json:"name"`
		}
		_ = json.Unmarshal(entry, &head) // an entry without a name is listed without one
		all = append(all, listed(head.Name, entry))
	}
	slices.SortFunc(all, func(a, b Listed) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return all
}

func listed(name string, entry []byte) Listed {
	sum := sha256.Sum256(entry)
	return Listed{Name: name, Size: len(entry), SHA256: hex.EncodeToString(sum[:])}
}

// Differences names what two configs put on a node differently, a line for each kind.
func Differences(a, b Listing) []string {
	var lines []string
	for _, kind := range []struct {
		one, many string
		a, b      []Listed
	}{
		{"file", "files", a.Files, b.Files},
		{"unit", "units", a.Units, b.Units},
		{"user", "users", a.Users, b.Users},
		{"other field", "other fields", a.Other, b.Other},
	} {
		if names := differing(kind.a, kind.b); len(names) == 1 {
			lines = append(lines, fmt.Sprintf("1 %s: %s", kind.one, names[0]))
		} else if len(names) > 1 {
			lines = append(lines, fmt.Sprintf("%d %s: %s", len(names), kind.many, joinNames(names)))
		}
	}
	return lines
}

func differing(a, b []Listed) []string {
	entries := func(list []Listed) map[string]Listed {
		byName := map[string]Listed{}
		for _, entry := range list {
			byName[entry.Name] = entry
		}
		return byName
	}
	inA, inB := entries(a), entries(b)
	names := map[string]bool{}
	for name, entry := range inA {
		if inB[name] != entry {
			names[name] = true
		}
	}
	for name := range inB {
		if _, both := inA[name]; !both {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// joinNames keeps a line readable when nearly everything differs.
func joinNames(names []string) string {
	const shown = 10
	var line bytes.Buffer
	for i, name := range names {
		if i == shown {
			fmt.Fprintf(&line, " and %d more", len(names)-shown)
			break
		}
		if i > 0 {
			line.WriteString(", ")
		}
		line.WriteString(name)
	}
	return line.String()
}
