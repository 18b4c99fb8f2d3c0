// SPDX-License-Identifier: Apache-2.0

package durabletest

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcsnap/mcsnap/snapshot/durable"
)

// file counts the steps of a file that is being written.
type file struct {
	disk *Disk
	file *os.File
	name string
}

// Create makes a file whose name and contents are unsynced.
func (d *Disk) Create(name string) (durable.File, error) {
	made := &file{disk: d, name: name}
	err := d.step("create "+name, func() (err error) {
		made.file, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if d.dirty == nil {
			d.dirty = map[string]*dirtyFile{}
		}
		d.dirty[name] = &dirtyFile{path: name}
		d.undoing(filepath.Dir(name), func() { _ = os.Remove(name) })
		return nil
	})
	if err != nil {
		if made.file != nil {
			_ = made.file.Close() // made, but the caller never learns of it
		}
		return nil, err
	}
	return made, nil
}

func (f *file) Chmod(mode fs.FileMode) error {
	return f.disk.step("chmod "+f.name, func() error { return f.file.Chmod(mode) })
}

func (f *file) Chown(uid, gid int) error {
	return f.disk.step("chown "+f.name, func() error { return f.file.Chown(uid, gid) })
}

// Write writes half of the bytes when it is the step that fails, as a full disk does.
func (f *file) Write(p []byte) (n int, err error) {
	err = f.disk.step("write "+f.name, func() (err error) { n, err = f.file.Write(p); return err })
	if err != nil && n == 0 {
		n, _ = f.file.Write(p[:len(p)/2])
	}
	return n, err
}

func (f *file) Sync() error {
	return f.disk.step("fsync "+f.name, func() error {
		delete(f.disk.dirty, f.name)
		return nil
	})
}

func (f *file) Close() error {
	err := f.disk.step("close "+f.name, func() error { return nil })
	if closing := f.file.Close(); err == nil {
		err = closing
	}
	return err
}
