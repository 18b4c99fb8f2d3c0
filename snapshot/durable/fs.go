// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// FS is the changes that this package makes, about one system call each, so that a test can fail or stop at every one
// (package durabletest does).
type FS interface {
	Lstat(name string) (fs.FileInfo, error)
	// Create makes a new file of mode 0600; it is an error if the name is taken.
	Create(name string) (File, error)
	Rename(from, to string) error
	Remove(name string) error
	Mkdir(name string, mode fs.FileMode) error
	// Symlink makes a symbolic link; it is an error if the name is taken.
	Symlink(target, name string) error
	// Chmod sets the mode of a folder.
	Chmod(name string, mode fs.FileMode) error
	// Lchown sets the owner of a folder, or of a link itself.
	Lchown(name string, uid, gid int) error
	// Sync has a file or folder on stable storage.
	Sync(name string) error
}

// File is a file that is being written.
type File interface {
	Chmod(mode fs.FileMode) error
	Chown(uid, gid int) error
	Write(p []byte) (int, error)
	Sync() error
	Close() error
}

// OS is the real file system.
var OS FS = osFS{}

type osFS struct{}

func (osFS) Lstat(name string) (fs.FileInfo, error)    { return os.Lstat(name) }
func (osFS) Rename(from, to string) error              { return os.Rename(from, to) }
func (osFS) Remove(name string) error                  { return os.Remove(name) }
func (osFS) Mkdir(name string, mode fs.FileMode) error { return os.Mkdir(name, mode) }
func (osFS) Symlink(target, name string) error         { return os.Symlink(target, name) }
func (osFS) Chmod(name string, mode fs.FileMode) error { return os.Chmod(name, mode) }
func (osFS) Lchown(name string, uid, gid int) error    { return os.Lchown(name, uid, gid) }

func (osFS) Create(name string) (File, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err // not file: a nil *os.File in an interface is not nil
	}
	return file, nil
}

func (osFS) Sync(name string) error {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	err = file.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil // a file system that has no fsync for folders keeps their order itself
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	return err
}

// Sweep removes the temporary files that killed processes left in one folder. The caller makes sure that nobody is
// writing there. A folder that does not exist, or is none, is swept.
func (f Files) Sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sweep %s: %w", dir, err)
	}
	swept := false
	for _, entry := range entries {
		if !IsTemporary(entry.Name()) {
			continue
		}
		if err := f.fs.Remove(filepath.Join(dir, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("sweep %s: %w", dir, err)
		}
		swept = true
	}
	if !swept {
		return nil
	}
	if err := f.fs.Sync(dir); err != nil {
		return fmt.Errorf("sweep %s: %w", dir, err)
	}
	return nil
}
