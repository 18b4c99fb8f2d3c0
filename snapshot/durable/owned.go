// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// Owner is the user and group of a file, by number.
type Owner struct{ UID, GID int }

// WriteOwned is [Files.WriteFile] for a file of an owner. A symbolic link of that name is replaced: the link, not what
// it points to.
func (f Files) WriteOwned(path string, data []byte, mode fs.FileMode, owner Owner) error {
	path = filepath.Clean(path)
	if err := f.replaceable(path); err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(path), temporaryName())
	if err := f.fill(temporary, data, mode, &owner); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.put(temporary, path)
}

// Symlink makes a symbolic link of an owner, in place of a file or link of that name, and has it on stable storage.
func (f Files) Symlink(target, path string, owner Owner) error {
	path = filepath.Clean(path)
	if err := f.replaceable(path); err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(path), temporaryName())
	err := f.fs.Symlink(target, temporary)
	if err == nil {
		if err = f.fs.Lchown(temporary, owner.UID, owner.GID); err != nil {
			_ = f.fs.Remove(temporary) // the first error is the one that counts
		}
	}
	if err != nil {
		return fmt.Errorf("link %s: %w", path, err)
	}
	return f.put(temporary, path)
}

// replaceable refuses what a rename must not replace: folders and special files.
func (f Files) replaceable(path string) error {
	info, err := f.fs.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("write %s: %w", path, err)
	case !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0:
		return &NotRegularError{Path: path, Mode: info.Mode()}
	}
	return nil
}

// MkdirOwned makes a folder with exactly this mode and owner, or gives them to the folder that is there, and has that on
// stable storage. Its parent exists.
func (f Files) MkdirOwned(path string, mode fs.FileMode, owner Owner) error {
	path = filepath.Clean(path)
	info, err := f.fs.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = f.fs.Mkdir(path, 0o700) // closed until it has its owner
	case err == nil && !info.IsDir():
		return fmt.Errorf("make folder %s: something else of that name stands there; remove it", path)
	}
	for _, step := range []func() error{
		func() error { return f.fs.Lchown(path, owner.UID, owner.GID) },
		func() error { return f.fs.Chmod(path, mode) },
		func() error { return f.fs.Sync(path) },
		func() error { return f.fs.Sync(filepath.Dir(path)) },
	} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		return fmt.Errorf("make folder %s: %w", path, err)
	}
	return nil
}
