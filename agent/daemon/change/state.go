// SPDX-License-Identifier: Apache-2.0

package change

import (
	"bytes"
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

// Kind is what a path is.
type Kind string

const (
	absent Kind = "absent"
	file   Kind = "file"
	link   Kind = "link"
	folder Kind = "folder"
)

// State is what a path is or is to be, without its content, which is kept as a blob of its digest.
type State struct {
	Kind   Kind        `json:"kind"`
	Target string      `json:"target,omitempty"` // of a link
	Mode   fs.FileMode `json:"mode,omitempty"`
	UID    int         `json:"uid,omitempty"`
	GID    int         `json:"gid,omitempty"`
	Blob   string      `json:"blob,omitempty"` // SHA-256 of the content

	content []byte // of a file, once it is read
}

func fileState(content []byte, mode fs.FileMode, uid, gid int) State {
	sum := sha256.Sum256(content)
	return State{Kind: file, Mode: mode, UID: uid, GID: gid, Blob: hex.EncodeToString(sum[:]), content: content}
}

// same tells whether two states are the same, content included.
func (s State) same(other State) bool {
	return s.Kind == other.Kind && s.Target == other.Target && s.Mode == other.Mode && s.UID == other.UID &&
		s.GID == other.GID && s.Blob == other.Blob
}

// read tells what a path of the node is.
func read(node *root.Root, name string) (State, error) {
	info, err := node.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return State{Kind: absent}, nil
	case err != nil:
		return State{}, err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := node.Readlink(name)
		return State{Kind: link, Target: target}, err
	case info.IsDir():
		uid, gid := owner(info)
		return State{Kind: folder, Mode: info.Mode() &^ fs.ModeDir, UID: uid, GID: gid}, nil
	case !info.Mode().IsRegular():
		return State{}, fmt.Errorf("%s is neither a file nor a link, and a config has a file there; remove it", name)
	}
	content, err := node.ReadFile(name, contents.MaxInflated)
	if err != nil {
		return State{}, err
	}
	uid, gid := owner(info)
	return fileState(content, info.Mode(), uid, gid), nil
}

func owner(info fs.FileInfo) (uid, gid int) {
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return 0, 0
	}
	return int(stat.Uid), int(stat.Gid)
}

// put brings a path to a state. It may be cut at any point and done again, and does nothing where nothing is to be done.
func put(node *root.Root, name string, want State, content []byte) error {
	is, err := read(node, name)
	if err != nil {
		return err
	}
	if is.same(want) {
		return nil
	}
	if err := straight(node, name); err != nil { // it may have changed since it was planned
		return err
	}
	if want.Kind == absent || is.Kind != absent && (is.Kind == folder) != (want.Kind == folder) {
		if err := node.Remove(name); err != nil || want.Kind == absent {
			return err
		}
	}
	if err := node.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch want.Kind {
	case link:
		return node.Symlink(want.Target, name, durable.Owner{})
	case folder:
		return node.MkdirOwned(name, want.Mode, durable.Owner{UID: want.UID, GID: want.GID})
	}
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); got != want.Blob {
		return fmt.Errorf("%s: the content kept for it has SHA-256 %s, want %s: the disk lost it", name, got, want.Blob)
	}
	return node.WriteOwned(name, content, want.Mode, durable.Owner{UID: want.UID, GID: want.GID})
}

// hasSuffix is for the files that a config appends to.
func withoutSuffix(content, suffix []byte) ([]byte, bool) {
	if !bytes.HasSuffix(content, suffix) {
		return nil, false
	}
	return content[:len(content)-len(suffix)], true
}

// posix is the mode as a config writes it, special bits included.
func posix(s State) uint32 {
	bits := uint32(s.Mode.Perm())
	for special, bit := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if s.Mode&special != 0 {
			bits |= bit
		}
	}
	return bits
}
