// SPDX-License-Identifier: Apache-2.0

package root

import (
	"errors"
	"io/fs"

	"github.com/mcsnap/mcsnap/snapshot/durable"
)

// WriteOwned replaces or makes a file of the node with exactly this mode and owner. A link of that name is replaced.
func (r *Root) WriteOwned(name string, data []byte, mode fs.FileMode, owner durable.Owner) error {
	return r.at(name, func(path string) error { return r.files.WriteOwned(path, data, mode, owner) })
}

// Symlink makes a link of the node in place of a file or link of that name. Its target is written as given.
func (r *Root) Symlink(target, name string, owner durable.Owner) error {
	return r.at(name, func(path string) error { return r.files.Symlink(target, path, owner) })
}

// MkdirOwned makes a folder of the node with exactly this mode and owner, or gives them to the one that is there.
func (r *Root) MkdirOwned(name string, mode fs.FileMode, owner durable.Owner) error {
	return r.at(name, func(path string) error { return r.files.MkdirOwned(path, mode, owner) })
}

// Readlink is what a link of the node points to, as it was written.
func (r *Root) Readlink(name string) (string, error) {
	resolved, err := r.Resolve(name)
	if err != nil {
		return "", err
	}
	target, err := r.root.Readlink(resolved)
	return target, named(name, err)
}

// Names lists what a folder of the node holds, sorted. A folder that is not there holds nothing.
func (r *Root) Names(name string) ([]string, error) {
	resolved, err := r.Resolve(name)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(r.root.FS(), resolved)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, named(name, err)
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}
