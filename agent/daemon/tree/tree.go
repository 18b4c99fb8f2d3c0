// SPDX-License-Identifier: Apache-2.0

// Package tree is what stands at the paths of a node: it looks at them, and makes them be something else. It knows files,
// links and folders with modes, owners and contents, and nothing of configs.
package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"

	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot/contents"
	"github.com/mcsnap/mcsnap/snapshot/durable"
)

// Kind is what stands at a path.
type Kind string

const (
	Absent Kind = "absent"
	File   Kind = "file"
	Link   Kind = "link"
	Folder Kind = "folder"
	Other  Kind = "other" // a device, socket or pipe: never made, never replaced
)

// State is what stands at a path, contents by digest. Two states are the same when they are equal.
type State struct {
	Kind   Kind        `json:"kind"`
	Mode   fs.FileMode `json:"mode,omitempty"` // of files and folders, Go's form, without the type
	UID    int         `json:"uid,omitempty"`
	GID    int         `json:"gid,omitempty"`
	SHA256 string      `json:"sha256,omitempty"` // of files
	Target string      `json:"target,omitempty"` // of links, as written
}

// Nothing is the state of a path where nothing is.
var Nothing = State{Kind: Absent}

const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// Sum is the digest by which a state names its contents.
func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Look tells what stands at a path of the node. A path below something that is no folder is absent.
func Look(node *root.Root, name string) (State, error) {
	state, _, err := look(node, name)
	return state, err
}

// Read is Look, with a file's contents.
func Read(node *root.Root, name string) (State, []byte, error) { return look(node, name) }

func look(node *root.Root, name string) (State, []byte, error) {
	info, err := node.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return Nothing, nil, nil
	}
	if err != nil {
		return State{}, nil, err
	}
	state := State{Mode: info.Mode() & modeBits}
	if stat, is := info.Sys().(*syscall.Stat_t); is {
		state.UID, state.GID = int(stat.Uid), int(stat.Gid)
	}
	switch {
	case info.Mode().IsRegular():
		data, err := node.ReadFile(name, 2*contents.MaxInflated)
		if err != nil {
			return State{}, nil, err
		}
		state.Kind, state.SHA256 = File, Sum(data)
		return state, data, nil
	case info.IsDir():
		state.Kind = Folder
	case info.Mode()&fs.ModeSymlink != 0:
		state.Kind, state.Mode = Link, 0 // a link's mode means nothing
		if state.Target, err = node.Readlink(name); err != nil {
			return State{}, nil, err
		}
	default:
		state.Kind = Other
	}
	return state, nil, nil
}

// Contents hands out file contents by digest.
type Contents interface {
	Blob(sum string) ([]byte, error)
}

// Ensure makes a path be in a state, whatever it was in before, durably. It does nothing to a path that is in it
// already, and may be cut at any point and called again. Folders are made and removed one at a time: a folder that is
// not empty is not removed, which is an error ([syscall.ENOTEMPTY]).
func Ensure(node *root.Root, name string, want State, from Contents) error {
	is, err := Look(node, name)
	if err != nil {
		return err
	}
	if is == want {
		// Whoever brought it about may have been cut before that was certain.
		if want.Kind == Absent || want.Kind == Link {
			name = path.Dir(name)
		}
		if err := node.Confirm(name); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return err
		}
		return nil
	}
	owner := durable.Owner{UID: want.UID, GID: want.GID}
	if is.Kind == Folder && want.Kind != Folder || want.Kind == Folder && is.Kind != Folder && is.Kind != Absent {
		if err := node.Remove(name); err != nil {
			return err
		}
	}
	switch want.Kind {
	case Absent:
		return node.Remove(name)
	case File:
		data, err := from.Blob(want.SHA256)
		if err != nil {
			return fmt.Errorf("%s: its new contents are lost: %w", name, err)
		}
		return node.WriteOwned(name, data, want.Mode, owner)
	case Link:
		return node.Symlink(want.Target, name, owner)
	case Folder:
		return node.MkdirOwned(name, want.Mode, owner)
	}
	return fmt.Errorf("%s: it was %s, which cannot be made again", name, want.Kind)
}
