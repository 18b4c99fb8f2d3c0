// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"path"
	"slices"

	"github.com/mcsnap/mcsnap/agent/daemon/tree"
	"github.com/mcsnap/mcsnap/agent/root"
)

// view is a node's files as they are going to be: what is planned over what is there. Names are resolved, so that two
// names of one place are one.
type view struct {
	node    *root.Root
	planned map[string]planned
}

type planned struct {
	tree.State
	data []byte
}

// key is the one name of a place on the node.
func (v *view) key(name string) (string, error) {
	resolved, err := v.node.Resolve(name)
	return path.Join("/", resolved), err
}

// Read tells what will stand at a name.
func (v *view) Read(name string) (tree.State, []byte, error) {
	key, err := v.key(name)
	if err != nil {
		return tree.State{}, nil, err
	}
	if p, is := v.planned[key]; is {
		return p.State, p.data, nil
	}
	return tree.Read(v.node, key)
}

// Names lists what a folder will hold.
func (v *view) Names(folder string) ([]string, error) {
	key, err := v.key(folder)
	if err != nil {
		return nil, err
	}
	var names []string
	switch state, err := tree.Look(v.node, key); {
	case err != nil:
		return nil, err
	case state.Kind == tree.Folder:
		if names, err = v.node.Names(key); err != nil {
			return nil, err
		}
	}
	for name, p := range v.planned {
		if path.Dir(name) != key {
			continue
		}
		base := path.Base(name)
		names = slices.DeleteFunc(names, func(n string) bool { return n == base })
		if p.Kind != tree.Absent {
			names = append(names, base)
		}
	}
	slices.Sort(names)
	return names, nil
}

// disk is a node's files as they are.
type disk struct{ node *root.Root }

func (d disk) Read(name string) (tree.State, []byte, error) { return tree.Read(d.node, name) }
func (d disk) Names(folder string) ([]string, error)        { return (&view{node: d.node}).Names(folder) }
