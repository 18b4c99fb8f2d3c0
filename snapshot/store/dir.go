// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/durable"
)

// Dir is a store in a folder:
//
//	blobs/sha256/<2 hex>/<64 hex>.json  the snapshots
//	names/<rendered name>/<64 hex>      when each digest of the name was stored, for which pool
//	pools/<pool>                        the digest that the pool was last answered with
//	served/<64 hex>                     when the digest was last served
//	damaged/<64 hex>-<time>.json        blobs that no longer matched their digest
//
// Folders have mode 0700 and files 0600: snapshots hold secrets. Disk is the only truth, nothing is cached, so several
// processes may use one folder (the server, and `mcs store prune` beside it). A blob counts once it is there under its
// name, which the last step of writing it does; everything else can be rebuilt from the blobs.
type Dir struct {
	dir   string
	files durable.Files
	log   *slog.Logger
	lock  *os.File // shared by all who have the store open

	mu        sync.Mutex               // held while something is changed
	confirmed map[snapshot.Digest]bool // digests whose files this process knows to be on stable storage
	folders   map[string]bool          // likewise
	onDamage  func(*DamagedError)
}

const (
	blobsFolder   = "blobs/sha256"
	namesFolder   = "names"
	poolsFolder   = "pools"
	servedFolder  = "served"
	damagedFolder = "damaged"
	lockFile      = ".lock"
)

// OpenDir opens the store in a folder and makes it if it is not there. What a killed process left half done is tidied
// up. A store that exists and cannot be written to is opened all the same: what is in it can be served.
func OpenDir(dir string, log *slog.Logger) (*Dir, error) { return OpenDirOn(durable.OS, dir, log) }

// OpenDirOn is OpenDir with the file system that changes go to, for tests.
func OpenDirOn(files durable.FS, dir string, log *slog.Logger) (*Dir, error) {
	d := &Dir{
		dir: filepath.Clean(dir), files: durable.With(files), log: log,
		confirmed: map[snapshot.Digest]bool{}, folders: map[string]bool{},
	}
	for _, folder := range []string{blobsFolder, namesFolder, poolsFolder, servedFolder, damagedFolder} {
		path := filepath.Join(d.dir, folder)
		err := d.files.MkdirAll(path, 0o700)
		if err == nil {
			continue
		}
		if _, reading := os.ReadDir(filepath.Join(d.dir, blobsFolder)); reading != nil {
			return nil, fmt.Errorf("store %s: %w", dir, err)
		}
		log.Warn("the store cannot be written to; what it holds is served, what is new is not kept", "dir", d.dir, "error", err)
		return d, nil
	}
	if err := d.tidy(); err != nil {
		log.Warn("the store could not be tidied up", "dir", d.dir, "error", err)
	}
	return d, nil
}

// Close lets go of the folder.
func (d *Dir) Close() error {
	if d.lock == nil {
		return nil
	}
	return d.lock.Close()
}

// OnDamage has f called for each damaged blob that is found.
func (d *Dir) OnDamage(f func(*DamagedError)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onDamage = f
}

func (d *Dir) blob(digest snapshot.Digest) string {
	hex := digest.Hex()
	return filepath.Join(d.dir, blobsFolder, hex[:2], hex+".json")
}

// mkdir makes a folder below the store's, once per process: the sync of its parent is what costs.
func (d *Dir) mkdir(path string) error {
	if d.folders[path] {
		return nil
	}
	if _, err := os.Lstat(path); err == nil { // by whom is not known, nor whether it is on stable storage
		if err := d.files.Confirm(path); err != nil {
			return err
		}
	} else if err := d.files.MkdirAll(path, 0o700); err != nil {
		return err
	}
	d.folders[path] = true
	return nil
}

// Put is [Store.Put].
func (d *Dir) Put(ctx context.Context, s *snapshot.Snapshot) error {
	if err := errors.Join(ctx.Err(), checkName("rendered config", s.Name()), checkName("pool", s.Pool())); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	digest, want := s.Digest(), s.WithOverlays(nil).Bytes()
	path := d.blob(digest)
	// A blob that differs in bytes and opens all the same differs in the pool, or was reformatted: it is replaced.
	have, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(have, want):
		if !d.confirmed[digest] {
			if err := d.files.Confirm(path); err != nil {
				return fmt.Errorf("store snapshot %s: %w", digest, err)
			}
		}
	default:
		if err == nil {
			if _, cause := verify(have, digest); cause != nil {
				_ = d.putAside(digest, cause) // it is reported there, and mended here
			}
		}
		if err := d.mkdir(filepath.Dir(path)); err != nil {
			return fmt.Errorf("store snapshot %s: %w", digest, err)
		}
		if err := d.files.WriteFile(path, want, 0o600); err != nil {
			return fmt.Errorf("store snapshot %s: %w", digest, err)
		}
	}
	if err := d.note(s.Name(), digest, s.Pool(), time.Now()); err != nil {
		return fmt.Errorf("store snapshot %s: %w", digest, err)
	}
	d.confirmed[digest] = true
	return nil
}

// verify opens a blob and checks that it is the one its name promises.
func verify(blob []byte, want snapshot.Digest) (*snapshot.Snapshot, error) {
	s, err := snapshot.Open(blob)
	if err == nil && s.Digest() != want {
		err = &snapshot.DigestError{Want: string(want), Got: s.Digest()}
	}
	return s, err
}

// Get is [Store.Get].
func (d *Dir) Get(ctx context.Context, digest snapshot.Digest) (*snapshot.Snapshot, error) {
	if err := errors.Join(ctx.Err(), checkDigest(digest)); err != nil {
		return nil, err
	}
	blob, err := d.read(digest)
	if err != nil {
		return nil, err
	}
	if s, cause := verify(blob, digest); cause == nil {
		return s, nil
	}
	// Once more with no writer at work, so that a good blob that has just been stored is not put aside.
	d.mu.Lock()
	defer d.mu.Unlock()
	if blob, err = d.read(digest); err != nil {
		return nil, err
	}
	s, cause := verify(blob, digest)
	if cause != nil {
		return nil, d.putAside(digest, cause)
	}
	return s, nil
}

func (d *Dir) read(digest snapshot.Digest) ([]byte, error) {
	blob, err := os.ReadFile(d.blob(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound("snapshot", digest)
	}
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return blob, nil
}

// putAside moves a damaged blob out of the way, where a person can look at it.
func (d *Dir) putAside(digest snapshot.Digest, cause error) *DamagedError {
	damaged := &DamagedError{Digest: digest, Cause: cause}
	aside := filepath.Join(d.dir, damagedFolder, fmt.Sprintf("%s-%d.json", digest.Hex(), time.Now().UnixNano()))
	delete(d.confirmed, digest)
	if err := d.files.Rename(d.blob(digest), aside); err != nil {
		d.log.Error("a stored snapshot is damaged and cannot be put aside", "digest", digest, "cause", cause, "error", err)
	} else {
		d.log.Error("a stored snapshot is damaged and was put aside; it is captured again if the cluster still has it",
			"digest", digest, "cause", cause, "aside", aside)
	}
	if d.onDamage != nil {
		d.onDamage(damaged)
	}
	return damaged
}

var _ Store = (*Dir)(nil)
