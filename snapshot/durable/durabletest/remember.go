// SPDX-License-Identifier: Apache-2.0

package durabletest

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// remember looks at what a name stands for and returns how to have it stand for that again. Without its folder, or
// without the rights, there is nothing to do.
func remember(name string) (back func()) {
	info, err := os.Lstat(name)
	if err != nil {
		return func() { _ = os.Remove(name) }
	}
	owner := func() {
		if stat, is := info.Sys().(*syscall.Stat_t); is {
			_ = os.Lchown(name, int(stat.Uid), int(stat.Gid))
		}
	}
	switch {
	case info.IsDir():
		return func() {
			_ = os.Mkdir(name, 0o700)
			owner()
			_ = os.Chmod(name, info.Mode())
		}
	case info.Mode()&fs.ModeSymlink != 0:
		target, _ := os.Readlink(name)
		return func() {
			_ = os.Remove(name)
			_ = os.Symlink(target, name)
			owner()
		}
	}
	was, _ := os.ReadFile(name)
	return func() {
		_ = os.Remove(name)
		_ = os.WriteFile(name, was, 0o600)
		owner()
		_ = os.Chmod(name, info.Mode())
	}
}

// Symlink makes a link whose name is unsynced.
func (d *Disk) Symlink(target, name string) error {
	return d.step("symlink "+name, func() error {
		if err := os.Symlink(target, name); err != nil {
			return err
		}
		d.undoing(filepath.Dir(name), func() { _ = os.Remove(name) })
		return nil
	})
}

// Chmod changes a mode, which is unsynced until the folder itself is synced.
func (d *Disk) Chmod(name string, mode fs.FileMode) error {
	return d.step("chmod "+name, func() error {
		if info, err := os.Lstat(name); err == nil {
			d.undoing(name, func() { _ = os.Chmod(name, info.Mode()) })
		}
		return os.Chmod(name, mode)
	})
}

// Lchown changes an owner, which is unsynced until the folder or link itself is synced.
func (d *Disk) Lchown(name string, uid, gid int) error {
	return d.step("chown "+name, func() error {
		if info, err := os.Lstat(name); err == nil {
			if stat, is := info.Sys().(*syscall.Stat_t); is {
				d.undoing(name, func() { _ = os.Lchown(name, int(stat.Uid), int(stat.Gid)) })
			}
		}
		return os.Lchown(name, uid, gid)
	})
}
