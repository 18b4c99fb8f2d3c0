// SPDX-License-Identifier: Apache-2.0

package root

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// WriteFile replaces or makes a file of the node, whole after a power cut, with exactly this mode.
func (r *Root) WriteFile(name string, data []byte, mode fs.FileMode) error {
	return r.at(name, func(path string) error { return r.files.WriteFile(path, data, mode) })
}

// Remove removes a file, link or empty folder of the node for good. What is not there is removed already.
func (r *Root) Remove(name string) error { return r.at(name, r.files.Remove) }

// MkdirAll makes a folder of the node and its missing parents.
func (r *Root) MkdirAll(name string, mode fs.FileMode) error {
	return r.at(name, func(path string) error { return r.files.MkdirAll(path, mode) })
}

// Confirm has a file that was found in place on stable storage: whoever wrote it may have been killed too early.
func (r *Root) Confirm(name string) error { return r.at(name, r.files.Confirm) }

// Sweep removes what killed writers left in a folder of the node. The caller holds the lock.
func (r *Root) Sweep(name string) error { return r.at(name, r.files.Sweep) }

func (r *Root) at(name string, do func(path string) error) error {
	path, err := r.Path(name)
	if err != nil {
		return err
	}
	return do(path)
}

// Lock makes this process the only one that works on the node, until unlock or its end. folder is a folder of the node
// that exists; nothing is written into it.
func (r *Root) Lock(folder string) (unlock func(), err error) {
	resolved, err := r.Resolve(folder)
	if err != nil {
		return nil, err
	}
	opened, err := r.root.OpenFile(resolved, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, named(folder, err)
	}
	if err := syscall.Flock(int(opened.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = opened.Close() // only opened
		return nil, fmt.Errorf("%s: another mcsnap is at work on this node (%w); let it end", folder, err)
	}
	return func() { _ = opened.Close() }, nil
}

// Rename gives a file of the node another name, and has both on stable storage.
func (r *Root) Rename(from, to string) error {
	target, err := r.Path(to)
	if err != nil {
		return err
	}
	return r.at(from, func(path string) error { return r.files.Rename(path, target) })
}
