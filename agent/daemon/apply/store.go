// SPDX-License-Identifier: Apache-2.0

// Package apply carries a plan out on a node, all of it or nothing, and keeps the daemon's own record of what the node
// runs. It may be cut at any point: the next start goes on where it was, forward or back.
//
// On disk, below /var/lib/mcsnap/daemon:
//
//	record.json              what the node runs: written last, when everything is in place and was looked at again
//	journal.json             there while a plan is under way: all steps with what was and what will be, by digest
//	blobs/<sha256>           the contents that the two name
//	snapshots/sha256-….json  the configs that the record names, sealed
//
// Blobs and the new snapshot are on stable storage before the journal, the journal before the first step, the steps
// before the record, the record before the journal goes.
package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/mcsnap/mcsnap/agent/daemon/tree"
	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// Folder is where the daemon keeps its own files.
const Folder = "/var/lib/mcsnap/daemon"

const (
	recordPath  = Folder + "/record.json"
	journalPath = Folder + "/journal.json"
	blobs       = Folder + "/blobs"
	snapshots   = Folder + "/snapshots"

	maxRecord  = 16 << 20
	maxJournal = 64 << 20
)

// Ref names a config.
type Ref struct {
	Name   string          `json:"name"`
	Digest snapshot.Digest `json:"digest"`
}

// Record is what the node runs.
type Record struct {
	Current  Ref  `json:"current"`
	Previous *Ref `json:"previous,omitempty"` // kept, so that going back needs nobody

	// Originals are what stood at the config's paths before; Folders those made for it.
	Originals map[string]tree.State `json:"originals,omitempty"`
	Folders   []string              `json:"folders,omitempty"`

	// Units says that systemd still has to read its units again. Reboot is the id of the boot in which a change was made
	// that needs another boot; "" for none.
	Units  bool   `json:"units,omitempty"`
	Reboot string `json:"reboot,omitempty"`
}

// Store is the daemon's folder. One process at a time has it open.
type Store struct {
	node   *root.Root
	unlock func()
}

// DamagedError says that one of the daemon's own files cannot be used.
type DamagedError struct{ Path, Problem string }

func (e *DamagedError) Error() string {
	return e.Path + ": " + e.Problem + "; restore it, or provision the node again"
}

// Open opens the daemon's folder and makes it where it is missing.
func Open(node *root.Root) (*Store, error) {
	for _, dir := range []string{"/var/lib/mcsnap", Folder, blobs, snapshots} {
		if err := node.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	unlock, err := node.Lock(Folder)
	if err != nil {
		return nil, err
	}
	s := &Store{node, unlock}
	for _, dir := range []string{Folder, blobs, snapshots} {
		if err := node.Sweep(dir); err != nil {
			unlock()
			return nil, err
		}
	}
	return s, nil
}

// Close lets another process have the folder.
func (s *Store) Close() { s.unlock() }

// Record returns nil when there is none: the node runs what it was born with.
func (s *Store) Record() (*Record, error) {
	record := &Record{}
	found, err := s.load(recordPath, maxRecord, record)
	if err == nil && found && record.Current.Name == "" {
		err = &DamagedError{recordPath, "it names no config"}
	}
	if err != nil || !found {
		return nil, err
	}
	return record, nil
}

// SetRecord replaces the record.
func (s *Store) SetRecord(record Record) error { return s.save(recordPath, record) }

func (s *Store) load(name string, limit int64, into any) (found bool, err error) {
	text, err := s.node.ReadFile(name, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, &DamagedError{name, "it is no JSON of this daemon's"}
	}
	return true, nil
}

func (s *Store) save(name string, value any) error {
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err
	}
	return s.node.WriteFile(name, append(text, '\n'), 0o600)
}

// Blob returns contents by digest, verified.
func (s *Store) Blob(sum string) ([]byte, error) {
	if len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("%.80q names no contents", sum)
	}
	at := path.Join(blobs, sum)
	data, err := s.node.ReadFile(at, 2*contents.MaxInflated)
	if err != nil {
		return nil, err
	}
	if tree.Sum(data) != sum {
		return nil, &DamagedError{at, "its contents do not match its name"}
	}
	return data, nil
}

// KeepBlobs puts contents on stable storage. What is there and whole stays.
func (s *Store) KeepBlobs(all map[string][]byte) error {
	for sum, data := range all {
		at := path.Join(blobs, sum)
		if _, err := s.Blob(sum); err == nil {
			if err := s.node.Confirm(at); err != nil {
				return err
			}
			continue
		}
		if err := s.node.WriteFile(at, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Snapshot returns a config that the daemon has kept. The error is an [fs.ErrNotExist] when it has not.
func (s *Store) Snapshot(ref Ref) (*snapshot.Snapshot, error) {
	text, err := s.node.ReadFile(snapshotPath(ref), snapshot.MaxSealed)
	if err != nil {
		return nil, err
	}
	opened, err := snapshot.Open(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", snapshotPath(ref), err)
	}
	if opened.Digest() != ref.Digest {
		return nil, &snapshot.DigestError{Want: string(ref.Digest), Got: opened.Digest()}
	}
	return opened, nil
}

// KeepSnapshot puts a config on stable storage, overlays included.
func (s *Store) KeepSnapshot(kept *snapshot.Snapshot) error {
	return s.node.WriteFile(snapshotPath(RefOf(kept)), kept.Bytes(), 0o600)
}

// RefOf names a snapshot.
func RefOf(s *snapshot.Snapshot) Ref { return Ref{s.Name(), s.Digest()} }

func snapshotPath(ref Ref) string { return path.Join(snapshots, ref.Digest.PathForm()+".json") }

// collect removes what no record and no journal needs: old configs hold old secrets.
func (s *Store) collect(record *Record) error {
	keep := map[string]bool{}
	if record != nil {
		keep[path.Base(snapshotPath(record.Current))] = true
		if record.Previous != nil {
			keep[path.Base(snapshotPath(*record.Previous))] = true
		}
		for _, original := range record.Originals {
			keep[original.SHA256] = true
		}
	}
	for _, dir := range []string{blobs, snapshots} {
		names, err := s.node.Names(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			if !keep[name] {
				if err := s.node.Remove(path.Join(dir, name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
