// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/durable"
)

// list returns the names in a folder of the store, without what is being written.
func (d *Dir) list(folder string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(d.dir, folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the store: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if !durable.IsTemporary(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// Entries is [Store.Entries].
func (d *Dir) Entries(ctx context.Context) ([]Entry, error) {
	selectedBy := map[snapshot.Digest][]string{}
	pools, err := d.list(poolsFolder)
	if err != nil {
		return nil, err
	}
	for _, pool := range pools {
		digest, err := d.Selected(ctx, pool)
		if err == nil {
			selectedBy[digest] = append(selectedBy[digest], pool)
		} else if !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	names, err := d.list(namesFolder)
	if err != nil {
		return nil, err
	}
	entries := []Entry{}
	for _, name := range names {
		records, err := d.records(name)
		if err := errors.Join(ctx.Err(), err); err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		for _, r := range records {
			entries = append(entries, Entry{
				Digest: r.digest, Name: name, Pool: r.Pool, Size: r.size, First: r.First, CapturedAt: r.Seen,
				ServedAt: d.servedAt(r.digest), SelectedBy: selectedBy[r.digest],
			})
		}
	}
	return entries, nil
}

// Damaged returns the files of blobs that were put aside.
func (d *Dir) Damaged() ([]string, error) {
	names, err := d.list(damagedFolder)
	for i, name := range names {
		names[i] = filepath.Join(d.dir, damagedFolder, name)
	}
	return names, err
}

// RemoveDamaged removes the files of blobs that were put aside.
func (d *Dir) RemoveDamaged() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	paths, err := d.Damaged()
	for _, path := range paths {
		err = errors.Join(err, d.files.Remove(path))
	}
	return err
}

// Delete is [Store.Delete].
func (d *Dir) Delete(ctx context.Context, digest snapshot.Digest) error {
	if err := errors.Join(ctx.Err(), checkDigest(digest)); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	// The content goes first: whatever is interrupted after that leaves only notes about what is not there, which no
	// reader minds.
	doomed := []string{d.blob(digest), filepath.Join(d.dir, servedFolder, digest.Hex())}
	names, err := d.list(namesFolder)
	if err != nil {
		return err
	}
	for _, name := range names {
		doomed = append(doomed, filepath.Join(d.dir, namesFolder, name, digest.Hex()))
	}
	pools, err := d.list(poolsFolder)
	if err != nil {
		return err
	}
	for _, pool := range pools {
		path := filepath.Join(d.dir, poolsFolder, pool)
		if text, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(text)) == string(digest) {
			doomed = append(doomed, path)
		}
	}
	aside, err := d.Damaged()
	if err != nil {
		return err
	}
	for _, path := range aside {
		if strings.HasPrefix(filepath.Base(path), digest.Hex()) {
			doomed = append(doomed, path)
		}
	}
	for i, path := range doomed {
		// The blob's folder is synced even if the blob is gone: who removed it may have been killed before that.
		if _, err := os.Lstat(path); i > 0 && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := d.files.Remove(path); err != nil {
			return fmt.Errorf("delete snapshot %s: %w", digest, err)
		}
		d.dropEmpty(filepath.Dir(path))
	}
	delete(d.confirmed, digest)
	return nil
}

// dropEmpty removes a name's or blobs' folder that holds nothing any more. Failing does no harm.
func (d *Dir) dropEmpty(folder string) {
	if slices.Contains([]string{namesFolder, blobsFolder}, strings.TrimPrefix(filepath.Dir(folder), d.dir+"/")) {
		if left, err := os.ReadDir(folder); err == nil && len(left) == 0 && d.files.Remove(folder) == nil {
			delete(d.folders, folder)
		}
	}
}
