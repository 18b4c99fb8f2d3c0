// SPDX-License-Identifier: Apache-2.0

package change

import (
	"path"
	"slices"
	"strings"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/snapshot/durable"
)

// ownFolders gives the folders that were made for SSH keys to the keys' owner, closed to others as sshd wants them.
func (u *Updater) ownFolders(j *journal, a action) error {
	if a.After.Kind != file || !strings.Contains(a.Path, "/.ssh/") {
		return nil
	}
	for dir := path.Dir(a.Path); strings.Contains(dir, "/.ssh"); dir = path.Dir(dir) {
		if slices.Contains(j.Dirs, dir) {
			if err := u.Node.MkdirOwned(dir, 0o700, durable.Owner{UID: a.After.UID, GID: a.After.GID}); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeEmptied removes folders from one upwards that nothing is left in: those this daemon made, and those that only
// hold a unit's drop-ins or SSH keys. Others may be the image's own and stay.
func (u *Updater) removeEmptied(dir string) error {
	for ; dir != "/"; dir = path.Dir(dir) {
		is, err := read(u.Node, dir)
		if err != nil {
			return err
		}
		made, err := originalOf(u.Node, dir)
		if err != nil {
			return err
		}
		if is.Kind == absent { // with the one it was in, or by a process that was killed
			if made != nil && made.Dir {
				if err := forgetOriginal(u.Node, dir); err != nil {
					return err
				}
			}
			continue
		}
		if is.Kind != folder || (made == nil || !made.Dir) && !holdsOnlyOurs(dir) {
			return nil
		}
		if err := u.removeIfEmpty(dir); err != nil {
			return err
		}
		if there, err := u.Node.Exists(dir); there || err != nil {
			return err
		}
		if err := forgetOriginal(u.Node, dir); err != nil {
			return err
		}
	}
	return nil
}

func holdsOnlyOurs(dir string) bool {
	base := path.Base(dir)
	return path.Dir(dir) == unitsDir && strings.HasSuffix(dir, ".d") ||
		base == ".ssh" || base == "authorized_keys.d" && path.Base(path.Dir(dir)) == ".ssh"
}

// removeMade removes the folders that an update made below one, the innermost first, unless something is in them.
func (u *Updater) removeMade(j *journal, below string) error {
	for _, dir := range slices.Backward(j.Dirs) {
		if !strings.HasPrefix(dir, below+"/") {
			continue
		}
		if is, err := read(u.Node, dir); err != nil || is.Kind != folder {
			continue // it was not made, or is no longer what was
		}
		if err := u.removeIfEmpty(dir); err != nil {
			return err
		}
	}
	return nil
}

// removeIfEmpty removes a folder unless something is in it.
func (u *Updater) removeIfEmpty(dir string) error {
	names, err := u.Node.Names(dir)
	if err != nil || len(names) > 0 {
		return err
	}
	return u.Node.Remove(dir)
}

// clean removes what an update needed, the journal first: without it the rest means nothing.
func (u *Updater) clean() error {
	if err := u.Node.Remove(journalPath); err != nil {
		return err
	}
	for _, dir := range []string{Dir, originalsDir, updateDir, blobsDir, path.Dir(handoff.CurrentPath)} {
		if err := u.Node.Sweep(dir); err != nil {
			return err
		}
	}
	for _, dir := range []string{blobsDir, updateDir} {
		names, err := u.Node.Names(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := u.Node.Remove(path.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
