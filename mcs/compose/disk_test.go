// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	v2_2 "github.com/coreos/ignition/config/v2_2/types"
	"github.com/coreos/ignition/v2/config/v3_6/types"

	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// node is what one path of a config becomes, as Ignition's documentation says. e2e/compose asks Ignition itself.
type node struct {
	Kind     string
	Mode     int // -1 where an existing mode is kept
	Contents string
	Target   string
	UID, GID int
}

// disk is what a config puts on a disk: nodes by path, and units by name with their drop-ins.
type disk struct {
	Nodes map[string]node
	Units map[string]string
}

// open reads a body of any version.
func open(t testing.TB, body []byte, v specver.Version) disk {
	t.Helper()
	if v != specver.V2_2 {
		cfg, _, err := specver.Up(body)
		if err != nil {
			t.Fatal(err)
		}
		return disk3(t, cfg)
	}
	var cfg v2_2.Config
	if err := json.Unmarshal(body, &cfg); err != nil {
		t.Fatal(err)
	}
	return disk2(t, cfg)
}

func disk3(t testing.TB, cfg types.Config) disk {
	t.Helper()
	d := disk{Nodes: map[string]node{}, Units: map[string]string{}}
	for _, ref := range cfg.Ignition.Config.Merge {
		if !strings.HasPrefix(value(ref.Source), "data:") {
			continue
		}
		inner, _, err := specver.Up([]byte(read(t, value(ref.Source), value(ref.Compression))))
		if err != nil {
			t.Fatal(err)
		}
		nested := disk3(t, inner)
		maps.Copy(d.Nodes, nested.Nodes)
		maps.Copy(d.Units, nested.Units)
	}
	for _, n := range cfg.Storage.Directories {
		d.Nodes[n.Path] = node{Kind: "directory", Mode: mode(n.Mode, -1), UID: value(n.User.ID), GID: value(n.Group.ID)}
	}
	for _, n := range cfg.Storage.Links {
		d.Nodes[n.Path] = node{Kind: linkKind(value(n.Hard)), Target: value(n.Target)}
	}
	for _, n := range cfg.Storage.Files {
		f := node{Kind: "file", Mode: mode(n.Mode, -1), UID: value(n.User.ID), GID: value(n.Group.ID)}
		if n.Contents.Source != nil {
			f.Mode = mode(n.Mode, 0o644)
			f.Contents = read(t, *n.Contents.Source, value(n.Contents.Compression))
		}
		for _, part := range n.Append {
			f.Contents += read(t, value(part.Source), value(part.Compression))
		}
		d.Nodes[n.Path] = f
	}
	for _, u := range cfg.Systemd.Units {
		text := enabled(u.Enabled) + masked(value(u.Mask)) + value(u.Contents)
		for _, dropin := range u.Dropins {
			if dropin.Contents != nil && *dropin.Contents == "" { // a file like any other, and in 2.2 written as one
				d.Nodes["/etc/systemd/system/"+u.Name+".d/"+dropin.Name] = node{Kind: "file", Mode: 0o644}
				continue
			}
			text += "\n--- " + dropin.Name + "\n" + value(dropin.Contents)
		}
		d.Units[u.Name] = text
	}
	return d
}

func disk2(t testing.TB, cfg v2_2.Config) disk {
	t.Helper()
	d := disk{Nodes: map[string]node{}, Units: map[string]string{}}
	ids := func(n v2_2.Node) (uid, gid int) {
		if n.User != nil {
			uid = value(n.User.ID)
		}
		if n.Group != nil {
			gid = value(n.Group.ID)
		}
		return uid, gid
	}
	at := func(n v2_2.Node) string {
		if n.Filesystem == "root" {
			return n.Path
		}
		return n.Filesystem + n.Path
	}
	for _, n := range cfg.Storage.Directories {
		uid, gid := ids(n.Node)
		d.Nodes[at(n.Node)] = node{Kind: "directory", Mode: mode(n.Mode, 0), UID: uid, GID: gid}
	}
	for _, n := range cfg.Storage.Links {
		d.Nodes[at(n.Node)] = node{Kind: linkKind(n.Hard), Target: n.Target}
	}
	for _, n := range cfg.Storage.Files {
		uid, gid := ids(n.Node)
		f := node{Kind: "file", Mode: mode(n.Mode, 0), UID: uid, GID: gid, Contents: read(t, n.Contents.Source, n.Contents.Compression)}
		if n.Append {
			f.Contents = d.Nodes[at(n.Node)].Contents + f.Contents
		}
		d.Nodes[at(n.Node)] = f
	}
	for _, u := range cfg.Systemd.Units {
		text := enabled(u.Enabled) + masked(u.Mask) + u.Contents
		for _, dropin := range u.Dropins {
			text += "\n--- " + dropin.Name + "\n" + dropin.Contents
		}
		d.Units[u.Name] = text
	}
	return d
}

// read gives contents, or for those elsewhere what is asked for.
func read(t testing.TB, source, compression string) string {
	t.Helper()
	if source != "" && !strings.HasPrefix(source, "data:") {
		return "from " + source + " " + compression
	}
	data, err := contents.Decode(source, compression, contents.MaxInflated)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func mode(m *int, unset int) int {
	if m == nil {
		return unset
	}
	return *m
}

func linkKind(hard bool) string {
	if hard {
		return "hard link"
	}
	return "link"
}

func enabled(e *bool) string {
	if e == nil {
		return "as preset: "
	}
	return map[bool]string{true: "enabled: ", false: "disabled: "}[*e]
}

func masked(m bool) string {
	if m {
		return "masked: "
	}
	return ""
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
