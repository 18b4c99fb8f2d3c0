// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/mcsnap/mcsnap/agent/daemon/tree"
	"github.com/mcsnap/mcsnap/agent/daemon/units"
	"github.com/mcsnap/mcsnap/agent/daemon/wanted"
)

// want is what a config has at one place of the node.
type want struct {
	tree.State
	data      []byte
	name      string // as the config spells it
	overwrite bool
	remote    bool   // the contents are elsewhere: State is not known
	hash      string // of remote contents, "" when not known
	unmask    bool   // whatever is there, but no mask
	home      string // of the account whose SSH keys these are
	entry     string // all that the config says, to tell a changed entry
	file      *wanted.File
}

func (w want) same(other want) bool { return w.entry == other.entry }

// expecter finds out what a config has on disk.
type expecter struct {
	facts    Facts
	places   map[string]want
	before   map[string]want // of the config that is on disk now
	accounts *accounts
}

// all is what a config has on disk, by place.
func (e *expecter) all(config *wanted.Config) (map[string]want, error) {
	e.accounts = &accounts{node: e.facts.Root}
	for _, name := range slices.Sorted(maps.Keys(config.Files)) {
		if err := e.file(config, config.Files[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(config.Units)) {
		if err := e.unit(config, config.Units[name]); err != nil {
			return nil, err
		}
	}
	return e.places, e.keys(config)
}

func (e *expecter) put(config *wanted.Config, name string, w want) error {
	place, err := (&view{node: e.facts.Root}).key(name)
	if err != nil {
		return err
	}
	if other, twice := e.places[place]; twice {
		return &wanted.InvalidError{Name: config.Name, Field: name, Problem: "it is the same place on this node as " + other.name}
	}
	if wanted.Reserved(place) {
		return &wanted.InvalidError{Name: config.Name, Field: name, Problem: "on this node it leads to mcsnap's own files"}
	}
	w.name = name
	e.places[place] = w
	return nil
}

func (e *expecter) file(config *wanted.Config, file wanted.File) error {
	w := want{overwrite: file.Overwrite || file.Contents == nil, remote: file.Remote(), entry: fmt.Sprintf("%+v", described(file)), file: &file}
	if w.remote {
		if file.Contents != nil && len(file.Append) == 0 {
			w.hash = file.Contents.Hash
		}
		return e.put(config, file.Path, w)
	}
	invalid := func(err error) error {
		return &wanted.InvalidError{Name: config.Name, Field: "spec.config.storage.files[" + file.Path + "]", Problem: err.Error()}
	}
	var base []byte
	w.State = tree.State{Kind: tree.File, Mode: 0o644}
	if file.Contents == nil { // what is there stays, with its mode and owner
		place, err := (&view{node: e.facts.Root}).key(file.Path)
		if err != nil {
			return err
		}
		original, data, err := e.originalOf(place, &file)
		if err != nil {
			return err
		}
		switch original.Kind {
		case tree.Absent:
		case tree.File:
			base = data
			w.State = original
		default:
			return &ConflictError{file.Path, "no file stands where the config appends to one; remove it"}
		}
	}
	data, err := file.Bytes(base)
	if err != nil {
		return invalid(err)
	}
	w.data, w.SHA256 = data, tree.Sum(data)
	if file.Mode != nil {
		w.Mode = *file.Mode
	}
	if w.UID, err = e.accounts.id("passwd", file.User, w.UID); err != nil {
		return invalid(err)
	}
	if w.GID, err = e.accounts.id("group", file.Group, w.GID); err != nil {
		return invalid(err)
	}
	return e.put(config, file.Path, w)
}

// described is a file with its pointers followed, to be compared as text.
func described(file wanted.File) []any {
	mode := fs.FileMode(0)
	if file.Mode != nil {
		mode = *file.Mode
	}
	said := []any{file.Mode != nil, mode, file.Append, file.Contents != nil}
	if file.Contents != nil {
		said = append(said, *file.Contents)
	}
	for _, account := range []wanted.Account{file.User, file.Group} {
		said = append(said, account.Name, account.ID != nil)
		if account.ID != nil {
			said = append(said, *account.ID)
		}
	}
	return said
}

func (e *expecter) unit(config *wanted.Config, unit wanted.Unit) error {
	at := path.Join(units.Folder, unit.Name)
	text := func(name, data string) error {
		state := tree.State{Kind: tree.File, Mode: 0o644, SHA256: tree.Sum([]byte(data))}
		return e.put(config, name, want{State: state, data: []byte(data), overwrite: true, entry: data})
	}
	var err error
	switch {
	case unit.Masked():
		err = e.put(config, at, want{State: tree.State{Kind: tree.Link, Target: "/dev/null"}, overwrite: true, entry: "masked"})
	case unit.Contents != "":
		err = text(at, unit.Contents)
	case unit.Mask != nil:
		err = e.put(config, at, want{unmask: true})
	}
	for _, name := range slices.Sorted(maps.Keys(unit.Dropins)) {
		if err == nil {
			err = text(path.Join(at+".d", name), unit.Dropins[name])
		}
	}
	return err
}

// original is what stands, or stood, at a place apart from any config: as recorded when a config took the place; what
// the config on disk must have added taken away again; what an image-based OS keeps below /usr/etc; or nothing.
func (e *expecter) original(place string) (tree.State, []byte, error) {
	var file *wanted.File
	if w, owned := e.before[place]; owned {
		file = w.file
	}
	return e.originalOf(place, file)
}

// originalOf is original for a place at which the config on disk has a file, nil for one at which it has none. A config
// that is read first of all (before is nil) is the one on disk.
func (e *expecter) originalOf(place string, file *wanted.File) (tree.State, []byte, error) {
	if recorded, is := e.facts.Originals[place]; is {
		if recorded.Kind != tree.File {
			return recorded, nil, nil
		}
		data, err := e.facts.Contents.Blob(recorded.SHA256)
		return recorded, data, err
	}
	owner, owned := e.before[place]
	if e.before != nil {
		file = owner.file
	} else {
		owned = true
	}
	if owned && (file == nil || file.Contents != nil) {
		return e.distribution(place)
	}
	state, data, err := tree.Read(e.facts.Root, place)
	if err == nil && state.Kind == tree.Folder && e.madeFolder(place) {
		return tree.Nothing, nil, nil
	}
	if err != nil || !owned || state.Kind != tree.File || file.Remote() {
		return state, data, err
	}
	suffix, err := file.Suffix()
	if err != nil {
		return state, data, nil // the config is refused elsewhere, with its name
	}
	base, is := bytes.CutSuffix(data, suffix)
	if !is {
		return e.distribution(place)
	}
	if len(base) == 0 {
		return tree.Nothing, nil, nil
	}
	state.SHA256 = tree.Sum(base)
	return state, base, nil
}

// madeFolder tells whether a folder is there for nothing but the config on disk.
func (e *expecter) madeFolder(place string) bool {
	for other := range e.before {
		if below(other, place) {
			return true
		}
	}
	return slices.Contains(e.facts.Folders, place)
}

// distribution is what an image-based OS would have at a place of /etc.
func (e *expecter) distribution(place string) (tree.State, []byte, error) {
	if !strings.HasPrefix(place, "/etc/") {
		return tree.Nothing, nil, nil
	}
	state, data, err := tree.Read(e.facts.Root, "/usr"+place)
	if err != nil || state.Kind != tree.File && state.Kind != tree.Link {
		return tree.Nothing, nil, err
	}
	return state, data, nil
}

func below(name, dir string) bool { return strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/") }

// ancestors are the folders above a place, the topmost first.
func ancestors(place string) (dirs []string) {
	for dir := path.Dir(place); dir != "/"; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}
