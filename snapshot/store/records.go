// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcsnap/mcsnap/snapshot"
)

// record is what names/<name>/<hex> holds.
type record struct {
	Pool  string    `json:"pool"`
	First time.Time `json:"first"` // when the digest was first stored
	Seen  time.Time `json:"seen"`  // when it last became the newest of its name

	digest snapshot.Digest
	size   int64
}

// note has the digest be the newest of its name.
func (d *Dir) note(name string, digest snapshot.Digest, pool string, now time.Time) error {
	folder := filepath.Join(d.dir, namesFolder, name)
	path := filepath.Join(folder, digest.Hex())
	records, err := d.records(name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	next := record{Pool: pool, First: now, Seen: now}
	if len(records) > 0 {
		next.Seen = later(now, records[0].Seen)
	}
	for i, r := range records {
		if r.digest != digest {
			continue
		}
		next.First = r.First
		if i > 0 || r.Pool != pool {
			break
		}
		if d.confirmed[digest] {
			return nil
		}
		// A record made up for lack of a file is not there to confirm.
		if err := d.files.Confirm(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := d.mkdir(folder); err != nil {
		return err
	}
	return d.files.WriteFile(path, marshal(next), 0o600)
}

func marshal(r record) []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // years beyond 9999 only
	}
	return append(text, '\n')
}

// records returns what is known of a name, newest first; only digests whose blob is there.
func (d *Dir) records(name string) ([]record, error) {
	entries, err := os.ReadDir(filepath.Join(d.dir, namesFolder, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the digests of %s: %w", name, err)
	}
	var records []record
	for _, entry := range entries {
		digest, err := snapshot.ParsePathDigest("sha256-" + entry.Name())
		if err != nil {
			continue // a temporary file
		}
		blob, err := os.Stat(d.blob(digest))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the digests of %s: %w", name, err)
		}
		r := record{digest: digest, size: blob.Size()}
		text, err := os.ReadFile(filepath.Join(d.dir, namesFolder, name, entry.Name()))
		if err != nil || json.Unmarshal(text, &r) != nil || checkName("pool", r.Pool) != nil {
			// What the record said can be read from the blob as well, but for the time.
			r.First, r.Seen = blob.ModTime(), blob.ModTime()
			if s, err := snapshot.LoadFile(d.blob(digest)); err == nil {
				r.Pool = s.Pool()
			}
		}
		records = append(records, r)
	}
	if len(records) == 0 {
		return nil, notFound("rendered config", name)
	}
	slices.SortFunc(records, func(a, b record) int {
		return cmp.Or(b.Seen.Compare(a.Seen), cmp.Compare(a.digest, b.digest))
	})
	return records, nil
}

// Digests is [Store.Digests].
func (d *Dir) Digests(ctx context.Context, name string) ([]snapshot.Digest, error) {
	if err := errors.Join(ctx.Err(), checkName("rendered config", name)); err != nil {
		return nil, err
	}
	records, err := d.records(name)
	if err != nil {
		return nil, err
	}
	digests := make([]snapshot.Digest, len(records))
	for i, r := range records {
		digests[i] = r.digest
	}
	return digests, nil
}

// Select is [Store.Select].
func (d *Dir) Select(ctx context.Context, pool string, digest snapshot.Digest) error {
	if err := errors.Join(ctx.Err(), checkName("pool", pool), checkDigest(digest)); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := os.Stat(d.blob(digest)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return notFound("snapshot", digest)
		}
		return fmt.Errorf("select for pool %s: %w", pool, err)
	}
	if err := d.files.WriteFile(filepath.Join(d.dir, poolsFolder, pool), []byte(digest+"\n"), 0o600); err != nil {
		return fmt.Errorf("select for pool %s: %w", pool, err)
	}
	return nil
}

// Selected is [Store.Selected].
func (d *Dir) Selected(ctx context.Context, pool string) (snapshot.Digest, error) {
	if err := errors.Join(ctx.Err(), checkName("pool", pool)); err != nil {
		return "", err
	}
	path := filepath.Join(d.dir, poolsFolder, pool)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", notFound("pool", pool)
	}
	if err != nil {
		return "", fmt.Errorf("read what pool %s was answered with: %w", pool, err)
	}
	digest, err := snapshot.ParseDigest(strings.TrimSpace(string(text)))
	if err != nil {
		return "", fmt.Errorf("%s: %w; remove the file", path, err)
	}
	if _, err := os.Stat(d.blob(digest)); errors.Is(err, fs.ErrNotExist) {
		return "", notFound("pool "+pool+"'s snapshot", digest)
	}
	return digest, nil
}

// MarkServed is [Store.MarkServed].
func (d *Dir) MarkServed(ctx context.Context, digest snapshot.Digest, at time.Time) error {
	if err := errors.Join(ctx.Err(), checkDigest(digest)); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := os.Stat(d.blob(digest)); errors.Is(err, fs.ErrNotExist) || !at.After(d.servedAt(digest)) {
		return nil
	}
	text := at.UTC().Format(time.RFC3339Nano) + "\n"
	if err := d.files.WriteFile(filepath.Join(d.dir, servedFolder, digest.Hex()), []byte(text), 0o600); err != nil {
		return fmt.Errorf("note when %s was served: %w", digest, err)
	}
	return nil
}

// servedAt is zero for what was never served. A note that cannot be read counts as served now: whoever prunes must not
// take it for one that no node has.
func (d *Dir) servedAt(digest snapshot.Digest) time.Time {
	text, err := os.ReadFile(filepath.Join(d.dir, servedFolder, digest.Hex()))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}
	}
	at, parsing := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(text)))
	if err != nil || parsing != nil {
		return time.Now()
	}
	return at
}
