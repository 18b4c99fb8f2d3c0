// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/mcsnap/mcsnap/snapshot"
)

// tidy removes what killed processes left half written, if no other process has the store open, and finds blobs whose
// name was not noted: they are complete, the kill came one step later.
func (d *Dir) tidy() error {
	alone, err := d.hold()
	if err != nil {
		return err
	}
	defer d.share()
	var faults []error
	noted := map[string]bool{}
	names, err := d.list(namesFolder)
	if err != nil {
		return err
	}
	for _, name := range names {
		digests, err := d.list(filepath.Join(namesFolder, name))
		if err != nil {
			return err
		}
		for _, hex := range digests {
			noted[hex] = true
		}
		if alone {
			faults = append(faults, d.files.Sweep(filepath.Join(d.dir, namesFolder, name)))
		}
	}
	shards, err := d.list(blobsFolder)
	if err != nil {
		return err
	}
	for _, shard := range shards {
		blobs, err := d.list(filepath.Join(blobsFolder, shard))
		if err != nil {
			return err
		}
		for _, blob := range blobs {
			hex := blob[:len(blob)-len(filepath.Ext(blob))]
			if digest, err := snapshot.ParsePathDigest("sha256-" + hex); err == nil && !noted[hex] {
				faults = append(faults, d.adopt(digest))
			}
		}
		if alone {
			faults = append(faults, d.files.Sweep(filepath.Join(d.dir, blobsFolder, shard)))
		}
	}
	if alone {
		for _, folder := range []string{poolsFolder, servedFolder, damagedFolder} {
			faults = append(faults, d.files.Sweep(filepath.Join(d.dir, folder)))
		}
	}
	return errors.Join(faults...)
}

// hold keeps the lock that all users of the store share, for as long as the process lives, and tells whether nobody
// else has it now.
func (d *Dir) hold() (alone bool, err error) {
	path := filepath.Join(d.dir, lockFile)
	d.lock, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	fd := int(d.lock.Fd())
	alone = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB) == nil
	if alone {
		return true, nil
	}
	if err := syscall.Flock(fd, syscall.LOCK_SH); err != nil { // waits while another process tidies up
		return false, fmt.Errorf("lock %s: %w", path, err)
	}
	return false, nil
}

// share lets other users in, once tidying is done.
func (d *Dir) share() { _ = syscall.Flock(int(d.lock.Fd()), syscall.LOCK_SH) }

// adopt notes the name of a blob that has none.
func (d *Dir) adopt(digest snapshot.Digest) error {
	info, err := os.Stat(d.blob(digest))
	if err != nil {
		return err
	}
	blob, err := d.read(digest)
	if err != nil {
		return err
	}
	s, cause := verify(blob, digest)
	if cause != nil {
		_ = d.putAside(digest, cause) // it is reported there, and not worth failing for
		return nil
	}
	return d.note(s.Name(), digest, s.Pool(), info.ModTime())
}
