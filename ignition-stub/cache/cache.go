// SPDX-License-Identifier: Apache-2.0

// Package cache keeps documents that were fetched and verified, in a folder, for the day when no server answers. What it
// gives back is, byte for byte, what was put in: a file that was changed is removed and not given. Documents hold
// secrets: files have mode 0600, folders 0700.
package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcsnap/mcsnap/snapshot/durable"
)

// Dir is a cache in a folder. Bodies lie in content/sha256-<hex>, and names/<sha256 of a URL> says which one a URL had
// last.
type Dir struct{ path string }

// ErrNotKept says that a URL was never fetched, or that what was kept is damaged.
var ErrNotKept = errors.New("not in the cache")

// Open makes the folder if it is missing.
func Open(path string) (*Dir, error) {
	for _, folder := range []string{path, filepath.Join(path, "content"), filepath.Join(path, "names")} {
		if err := durable.MkdirAll(folder, 0o700); err != nil {
			return nil, fmt.Errorf("cache: %w", err)
		}
	}
	return &Dir{path: path}, nil
}

// Keep stores the body that a URL has now.
func (d *Dir) Keep(url string, body []byte) error {
	digest := sum(body)
	if held, err := os.ReadFile(d.content(digest)); err != nil || sum(held) != digest {
		if err := durable.WriteFile(d.content(digest), body, 0o600); err != nil {
			return err
		}
	}
	return durable.WriteFile(d.name(url), []byte(digest+"\n"), 0o600)
}

// Find returns the body that a URL had last. The error wraps [ErrNotKept].
func (d *Dir) Find(url string) ([]byte, error) {
	digest, err := os.ReadFile(d.name(url))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotKept
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotKept, err)
	}
	if len(digest) != 2*sha256.Size+1 {
		return nil, fmt.Errorf("%w: %s is damaged", ErrNotKept, d.name(url))
	}
	want := string(digest[:2*sha256.Size])
	if _, err := hex.DecodeString(want); err != nil {
		return nil, fmt.Errorf("%w: %s is damaged", ErrNotKept, d.name(url))
	}
	body, err := os.ReadFile(d.content(want))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotKept, err)
	}
	if sum(body) != want {
		return nil, errors.Join(fmt.Errorf("%w: %s was changed and is removed", ErrNotKept, d.content(want)), durable.Remove(d.content(want)))
	}
	return body, nil
}

func (d *Dir) content(digest string) string {
	return filepath.Join(d.path, "content", "sha256-"+digest)
}

// name is a digest since a URL may hold what no file name can, and what nobody else is to read.
func (d *Dir) name(url string) string { return filepath.Join(d.path, "names", sum([]byte(url))) }

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}
