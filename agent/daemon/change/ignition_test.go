// SPDX-License-Identifier: Apache-2.0

package change

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

const on, off, masked = `,"enabled":true`, `,"enabled":false`, `,"mask":true`

func gz(text string) string { return contents.Base64(contents.Compress([]byte(text))) }

// files are changes of files: what a node was born with, and what it is to be. Each has a path of its own, so that all are
// made in one update; every one is made in both directions.
func files() map[string][2][]string {
	file := func(path, content string) []string { return []string{fileJSON(path, content)} }
	appended := func(path string, parts ...string) []string {
		var list []string
		for _, part := range parts {
			list = append(list, `{"source":"data:,`+part+`"}`)
		}
		return []string{`{"path":"` + path + `","append":[` + strings.Join(list, ",") + `]}`}
	}
	with := func(path, members string) []string {
		return []string{`{"path":"` + path + `","overwrite":true` + members + `}`}
	}
	return map[string][2][]string{
		"other content":         {file("/etc/a1", "1"), file("/etc/a1", "2")},
		"in new folders":        {nil, file("/etc/new/deep/a", "1")},
		"other mode":            {file("/etc/a2", "1"), with("/etc/a2", `,"mode":384,"contents":{"source":"data:,1"}`)},
		"set-user-id":           {nil, with("/usr/local/bin/a", `,"mode":2541,"contents":{"source":"data:,1"}`)},
		"owner":                 {nil, with("/etc/owned", `,"mode":416,"user":{"name":"chrony"},"group":{"id":10},"contents":{"source":"data:,x"}`)},
		"owner back to root":    {with("/etc/owned2", `,"mode":416,"user":{"name":"chrony"},"group":{"name":"wheel"},"contents":{"source":"data:,x"}`), with("/etc/owned2", `,"mode":416,"contents":{"source":"data:,x"}`)},
		"gzip":                  {nil, with("/etc/gz", `,"mode":384,"contents":{"compression":"gzip","source":"`+gz("hello")+`"}`)},
		"the mode by default":   {nil, with("/etc/a3", `,"contents":{"source":"data:,x"}`)},
		"emptied":               {file("/etc/a4", "1"), file("/etc/a4", "")},
		"the image's":           {nil, file("/etc/motd", "ours")},
		"the image's, changed":  {file("/etc/motd1", "ours"), file("/etc/motd1", "also%20ours")},
		"moved":                 {file("/etc/a5", "1"), file("/etc/b5", "1")},
		"append":                {nil, appended("/etc/chrony1.conf", "one")},
		"append more":           {appended("/etc/chrony2.conf", "one"), appended("/etc/chrony2.conf", "one", "two")},
		"append something else": {appended("/etc/chrony3.conf", "one"), appended("/etc/chrony3.conf", "two")},
		"append to contents":    {nil, with("/etc/a6", `,"mode":420,"contents":{"source":"data:,x"},"append":[{"source":"data:,y"}]`)},
		"append to nothing":     {nil, appended("/etc/none", "y")},
		"a folder in its place": {file("/etc/turn1", "1"), []string{fileJSON("/etc/turn1/a", "1"), fileJSON("/etc/turn1/deep/b", "1")}},
		"a file in its place":   {file("/etc/turn2/deep/a", "1"), with("/etc/turn2", `,"mode":384,"contents":{"source":"data:,1"}`)},
		"append, then replace":  {appended("/etc/motd2", "y"), file("/etc/motd2", "ours")},
	}
}

// unitChanges are the same for units.
func unitChanges() map[string][2][]string {
	unit := func(name string, more ...string) []string {
		return []string{unitJSON(name+".service", service(name), more...)}
	}
	dropin := func(unit, content string) []string {
		return []string{`{"name":"` + unit + `.service","dropins":[{"name":"10-a.conf","contents":"` + content + `"}]}`}
	}
	bare := func(name, more string) []string { return []string{`{"name":"` + name + `.service"` + more + `}`} }
	elsewhere := []string{unitJSON("w.service", strings.Replace(service("w"), "multi-user", "default", 1), on)}
	return map[string][2][]string{
		"new, enabled":           {nil, unit("n1", on)},
		"new, not enabled":       {nil, unit("n2")},
		"enabled later":          {unit("n3"), unit("n3", on)},
		"disabled":               {unit("n4", on), unit("n4", off)},
		"other content":          {unit("n5", on), []string{unitJSON("n5.service", service("other"), on)}},
		"wanted by another":      {unit("w", on), elsewhere},
		"masked":                 {unit("n6", on), unit("n6", masked)},
		"masked and enabled":     {unit("n7", on), unit("n7", on+masked)},
		"the image's, enabled":   {nil, bare("image1", on)},
		"the image's, masked":    {nil, bare("image2", masked)},
		"enabled and not there":  {nil, bare("absent", on)},
		"drop-in":                {nil, dropin("image3", "[Service]\\nNice=1\\n")},
		"drop-in, other content": {dropin("image4", "[Service]\\nNice=1\\n"), dropin("image4", "[Service]\\nNice=2\\n")},
		"drop-in, empty":         {nil, dropin("image5", "")},
		"untouched":              {unit("n8", on), unit("n8", on)},
	}
}

// configs are the pairs that all these make.
func configs() map[string][2]config {
	const a, b = `"ssh-ed25519 A a"`, `"ssh-ed25519 B b"`
	all := [2]config{}
	for _, change := range files() {
		all[0].files, all[1].files = append(all[0].files, change[0]...), append(all[1].files, change[1]...)
	}
	units := [2]config{{keys: []string{a}}, {keys: []string{a, b}}}
	for _, change := range unitChanges() {
		units[0].units, units[1].units = append(units[0].units, change[0]...), append(units[1].units, change[1]...)
	}
	return map[string][2]config{
		"files":       all,
		"units, keys": units,
		"everything":  {{}, {files: all[1].files, units: units[1].units, keys: units[1].keys}},
		"first keys":  {{}, {keys: []string{a}}},
		"last unit":   {{units: []string{unitJSON("n1.service", service("n1"), on)}}, {}},
	}
}

// A node that was updated is the node that a fresh provisioning would have made: the same paths, modes, owners, contents
// and enablement as the real Ignition and systemd's presets leave on a fresh image. And going back to the first config
// gives the tree of before.
func TestSameTreeAsIgnition(t *testing.T) {
	for name, pair := range configs() {
		t.Run(name, func(t *testing.T) {
			one, other := image(t), image(t)
			first, second := pair[0].seal(t, "1"), pair[1].seal(t, "2")
			firstBoot(t, one, first)
			firstBoot(t, other, second)
			bornFirst, bornSecond := tree(t, one), tree(t, other)
			u := node(t, one, first, nil)
			thereAndBack(t, u, first, second, bornFirst, bornSecond)
			u = node(t, other, second, nil)
			thereAndBack(t, u, second, first, bornSecond, bornFirst)
		})
	}
}

// thereAndBack updates a node and takes it home again. born is what its root was, want what a fresh one with the other
// config is.
func thereAndBack(t *testing.T, u *Updater, from, to *snapshot.Snapshot, born, want map[string]string) {
	t.Helper()
	dir := u.Node.Dir()
	result, err := u.Update(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	got := tree(t, dir)
	forgiveFolders(t, dir, got, want, born)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s to %s changed %v, units %v; fresh (-), updated (+):\n%s", from.Name(), to.Name(), result.Changed, result.Units, diff)
	}
	if drift, err := u.Drift(t.Context()); err != nil || len(drift) > 0 {
		t.Errorf("drift right after the update: %v, %v", drift, err)
	}
	again, err := u.Update(t.Context(), to)
	if err != nil || len(again.Changed)+len(again.Units) > 0 {
		t.Errorf("again: %+v, %v; want nothing to do", again, err)
	}
	if _, err := u.Update(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	home := tree(t, dir)
	forgiveFolders(t, dir, home, born, want)
	if diff := cmp.Diff(born, home); diff != "" {
		t.Errorf("%s and home again (-born +home):\n%s", from.Name(), diff)
	}
}

// forgiveFolders takes out of got the empty folders that only the first boot had made. The daemon cannot tell them from the
// image's own and leaves them; docs/daemon.md says so.
func forgiveFolders(t *testing.T, dir string, got, want, before map[string]string) {
	t.Helper()
	for name := range before {
		if _, wanted := want[name]; wanted {
			continue
		}
		if entries, err := os.ReadDir(filepath.Join(dir, name)); err == nil && len(entries) == 0 {
			delete(got, name)
			for parent := filepath.Dir(name); want[parent] == "" && before[parent] != ""; parent = filepath.Dir(parent) {
				delete(got, parent)
			}
		}
	}
}
