// SPDX-License-Identifier: Apache-2.0

// Package durabletest is a file system for tests that fails at a chosen step, or loses power there. It works on real
// files, so what is left can be looked at with the program's own readers.
//
// It simulates what a disk may do with what was not synced; it does not simulate a disk that lies about fsync.
package durabletest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/mcsnap/mcsnap/snapshot/durable"
)

// ErrPowerCut is what every step returns from the cut on.
var ErrPowerCut = errors.New("durabletest: the power is gone")

// Disk is a [durable.FS] that counts its steps and keeps book of what is on stable storage. The zero value works and
// never fails.
type Disk struct {
	// FailAt is the step (1 is the first) that returns Err; 0 means none.
	FailAt int
	// Err is what the failing step returns; nil means [ErrPowerCut].
	Err error
	// Done has the failing step take place all the same, as when the answer is lost but not the deed.
	Done bool
	// Before is called before each step, which it may not let happen (a process can kill itself here).
	Before func(step int, name string)
	// Dead has all later steps fail too, as after a power cut or kill -9.
	Dead bool

	mu    sync.Mutex
	steps []string
	undo  map[string][]func()   // by folder: what takes back its changes since its last sync, oldest first
	dirty map[string]*dirtyFile // by path: files with unsynced contents
}

type dirtyFile struct{ path string }

// Steps returns what was asked of the disk so far, as "operation path".
func (d *Disk) Steps() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.steps...)
}

// step runs do as the next step, or fails as configured.
func (d *Disk) step(name string, do func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steps = append(d.steps, name)
	at, fault := len(d.steps), d.fault()
	if d.Before != nil {
		d.Before(at, name)
	}
	switch {
	case d.FailAt > 0 && d.Dead && at > d.FailAt:
		return fault
	case at == d.FailAt && !d.Done:
		return fault
	case at == d.FailAt:
		if err := do(); err != nil {
			return err
		}
		return fault
	}
	return do()
}

func (d *Disk) fault() error {
	if d.Err != nil {
		return d.Err
	}
	return ErrPowerCut
}

// undoing notes how to take back a change of a folder.
func (d *Disk) undoing(dir string, back func()) {
	if d.undo == nil {
		d.undo = map[string][]func(){}
	}
	d.undo[dir] = append(d.undo[dir], back)
}

// Loss is what a power cut takes of what was not synced. A disk may do any mixture; these are its extremes.
type Loss int

const (
	KeepAll   Loss = iota // everything had reached the disk after all
	LoseData              // names are there, unsynced contents are not: the files are empty
	LoseNames             // contents are there, unsynced names are not
	LoseAll               // nothing but what was synced is there
)

// Losses are all of them.
var Losses = []Loss{KeepAll, LoseData, LoseNames, LoseAll}

// PowerCut leaves the files as a disk may have them after a cut. The Disk is of no use afterwards.
func (d *Disk) PowerCut(loss Loss) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if loss == LoseData || loss == LoseAll {
		for _, file := range d.dirty {
			_ = os.Truncate(file.path, 0) // a file that was removed meanwhile has nothing to lose
		}
	}
	if loss == LoseNames || loss == LoseAll {
		for _, changes := range d.undo {
			for i := len(changes) - 1; i >= 0; i-- {
				changes[i]()
			}
		}
	}
	d.undo, d.dirty = nil, nil
}

var _ durable.FS = (*Disk)(nil)

// Lstat is not a step: it changes nothing. It fails on a dead disk.
func (d *Disk) Lstat(name string) (fs.FileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.FailAt > 0 && d.Dead && len(d.steps) >= d.FailAt {
		return nil, d.fault()
	}
	return os.Lstat(name)
}

// Sync is fsync by name, on a file or folder. Only the book is kept: no real disk is waited for.
func (d *Disk) Sync(name string) error {
	return d.step("sync "+name, func() error {
		if _, err := os.Lstat(name); err != nil {
			return err
		}
		delete(d.undo, name)
		delete(d.dirty, name)
		return nil
	})
}

// Mkdir makes a folder, which its parent may forget.
func (d *Disk) Mkdir(name string, mode fs.FileMode) error {
	return d.step("mkdir "+name, func() error {
		if err := os.Mkdir(name, mode); err != nil {
			return err
		}
		d.undoing(filepath.Dir(name), func() { _ = os.RemoveAll(name) })
		return nil
	})
}

// Remove removes a file or empty folder, which may come back.
func (d *Disk) Remove(name string) error {
	return d.step("remove "+name, func() error {
		was := remember(name)
		if err := os.Remove(name); err != nil {
			return err
		}
		delete(d.dirty, name)
		d.undoing(filepath.Dir(name), was)
		return nil
	})
}

// Rename moves a file; either name may be lost and the old contents may come back.
func (d *Disk) Rename(from, to string) error {
	return d.step("rename "+from+" "+to, func() error {
		was := remember(to)
		if err := os.Rename(from, to); err != nil {
			return err
		}
		delete(d.dirty, to)
		if file := d.dirty[from]; file != nil {
			delete(d.dirty, from)
			file.path, d.dirty[to] = to, file
		}
		d.undoing(filepath.Dir(to), was)
		return nil
	})
}
