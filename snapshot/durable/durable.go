// SPDX-License-Identifier: Apache-2.0

// Package durable writes files that are whole after a power cut: the old contents or the new ones, never a part, and
// the new ones for certain once the call has returned. Everything in mcsnap that has to be found again is written
// through it.
//
// WriteFile makes these system calls, and each has its reason:
//
//	lstat(path)                          a link, folder or device in the file's place is not replaced
//	open(dir/.mcsnap-<16 hex>.tmp, O_CREAT|O_EXCL|O_WRONLY, 0600)
//	                                     in the same folder: rename works within one file system only
//	fchmod(file, mode)                   the exact mode, whatever the umask; before the first byte, which may be secret
//	write(file) …
//	fsync(file)                          before the rename, or a cut can leave the new name on an empty file
//	close(file)
//	rename(temporary, path)              the moment at which readers see the new contents
//	open(dir), fsync(dir), close(dir)    the name too is on the disk
//
// An error before the rename leaves the old file as it was and removes the temporary one. An error of the last fsync
// leaves the new file in place but promises nothing about it; write it again. A process that is killed leaves at most a
// temporary file, which [IsTemporary] knows and [Files.Sweep] removes.
//
// It is not a lock: two writers of one path do not mix their bytes, and the later one wins.
//
// google/renameio does the same up to the rename, but neither syncs the folder nor lets a test fail between two steps,
// so it would be a dependency for three calls.
package durable

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// WriteFile writes data to path with the exact mode. See the package comment for what it promises.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return With(OS).WriteFile(path, data, mode)
}

// Remove removes a file or an empty folder and has that on stable storage. What is not there is removed already.
func Remove(path string) error { return With(OS).Remove(path) }

// MkdirAll makes a folder and its missing parents, with the mode less the umask, and has them on stable storage. A
// folder that is there already keeps its mode.
func MkdirAll(path string, mode fs.FileMode) error { return With(OS).MkdirAll(path, mode) }

// NotRegularError says that something other than a regular file stands where a file is to be written.
type NotRegularError struct {
	Path string
	Mode fs.FileMode
}

func (e *NotRegularError) Error() string {
	what := "a special file"
	switch {
	case e.Mode.IsDir():
		what = "a folder"
	case e.Mode&fs.ModeSymlink != 0:
		what = "a symbolic link"
	}
	return fmt.Sprintf("%s is %s and is not replaced; remove it or name another file", e.Path, what)
}

// Files is this package's functions on one FS.
type Files struct{ fs FS }

// With returns the package's functions on fsys; tests give one that fails. Nil means [OS].
func With(fsys FS) Files {
	if fsys == nil {
		fsys = OS
	}
	return Files{fsys}
}

// WriteFile is [WriteFile].
func (f Files) WriteFile(path string, data []byte, mode fs.FileMode) error {
	path = filepath.Clean(path)
	info, err := f.fs.Lstat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return &NotRegularError{Path: path, Mode: info.Mode()}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("write %s: %w", path, err)
	}
	temporary := filepath.Join(filepath.Dir(path), temporaryName())
	if err := f.fill(temporary, data, mode, nil); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.put(temporary, path)
}

// put gives a finished temporary its name.
func (f Files) put(temporary, path string) error {
	if err := f.fs.Rename(temporary, path); err != nil {
		_ = f.fs.Remove(temporary) // the rename's error is the one that counts
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := f.fs.Sync(filepath.Dir(path)); err != nil {
		return fmt.Errorf("write %s: it is in place, but its folder could not be synced: %w", path, err)
	}
	return nil
}

// fill writes a new file and syncs it, or leaves nothing. No owner means this process's user.
func (f Files) fill(temporary string, data []byte, mode fs.FileMode, owner *Owner) error {
	file, err := f.fs.Create(temporary)
	if err != nil {
		return err
	}
	if owner != nil { // before the mode: changing owners takes the setuid bit away
		err = file.Chown(owner.UID, owner.GID)
	}
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil {
		_, err = file.Write(data)
	}
	if err == nil {
		err = file.Sync()
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		_ = f.fs.Remove(temporary) // the first error is the one that counts
	}
	return err
}

// Remove is [Remove].
func (f Files) Remove(path string) error {
	path = filepath.Clean(path)
	if err := f.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	// Also when it was gone: whoever removed it may have been killed before the folder was synced.
	if err := f.fs.Sync(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: its folder could not be synced: %w", path, err)
	}
	return nil
}

// Rename gives a file another name, in another folder of the same file system if need be, and has both folders on
// stable storage. A regular file of the new name is replaced.
func (f Files) Rename(from, to string) error {
	from, to = filepath.Clean(from), filepath.Clean(to)
	if err := f.fs.Rename(from, to); err != nil {
		return fmt.Errorf("rename %s: %w", from, err)
	}
	dirs := []string{filepath.Dir(to), filepath.Dir(from)} // the new name first: a cut between may leave two, never none
	if dirs[0] == dirs[1] {
		dirs = dirs[:1]
	}
	for _, dir := range dirs {
		if err := f.fs.Sync(dir); err != nil {
			return fmt.Errorf("rename %s to %s: done, but %s could not be synced: %w", from, to, dir, err)
		}
	}
	return nil
}

// MkdirAll is [MkdirAll].
func (f Files) MkdirAll(path string, mode fs.FileMode) error {
	path = filepath.Clean(path)
	parent := filepath.Dir(path)
	info, err := f.fs.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if parent != path {
			if err := f.MkdirAll(parent, mode); err != nil {
				return err
			}
		}
		if err = f.fs.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make folder %s: %w", path, err)
		}
		return f.syncParent(path, parent)
	}
	if err != nil {
		return fmt.Errorf("make folder %s: %w", path, err)
	}
	if info.Mode()&fs.ModeSymlink != 0 { // a link to a folder serves as one
		return nil
	}
	if !info.IsDir() {
		return fmt.Errorf("make folder %s: a file of that name stands there; remove it", path)
	}
	return nil
}

func (f Files) syncParent(path, parent string) error {
	if err := f.fs.Sync(parent); err != nil {
		return fmt.Errorf("make folder %s: its parent could not be synced: %w", path, err)
	}
	return nil
}

// Confirm has a file that is there already on stable storage, its name included: whoever wrote it may have been killed
// before that was certain.
func (f Files) Confirm(path string) error {
	path = filepath.Clean(path)
	for _, name := range []string{path, filepath.Dir(path)} {
		if err := f.fs.Sync(name); err != nil {
			return fmt.Errorf("sync %s: %w", name, err)
		}
	}
	return nil
}

const (
	temporaryPrefix = ".mcsnap-"
	temporarySuffix = ".tmp"
)

func temporaryName() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails, see its documentation
	return temporaryPrefix + hex.EncodeToString(random[:]) + temporarySuffix
}

// IsTemporary tells whether a file name, without folder, is one that WriteFile gives to a file it has not finished.
func IsTemporary(name string) bool {
	random, ok := strings.CutPrefix(name, temporaryPrefix)
	if !ok {
		return false
	}
	random, ok = strings.CutSuffix(random, temporarySuffix)
	_, err := hex.DecodeString(random)
	return ok && err == nil && len(random) == 16
}
