// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/durable"
	"github.com/mcsnap/mcsnap/snapshot/store"
	"github.com/mcsnap/mcsnap/snapshot/store/storetest"
)

var quiet = slog.New(slog.DiscardHandler)

func open(t testing.TB, dir string) *store.Dir {
	t.Helper()
	d, err := store.OpenDir(dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func blob(dir string, d snapshot.Digest) string {
	return filepath.Join(dir, "blobs/sha256", d.Hex()[:2], d.Hex()+".json")
}

func TestMemory(t *testing.T) {
	storetest.Run(t, storetest.Implementation{Open: func(*testing.T) store.Store { return store.NewMemory() }})
}

// Besides the suite itself: damage of each kind is noticed.
func TestDir(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"one bit":   func(b []byte) []byte { b[len(b)-20] ^= 1; return b },
		"cut short": func(b []byte) []byte { return b[:len(b)/2] },
		"emptied":   func([]byte) []byte { return nil },
		"another snapshot": func([]byte) []byte {
			return storetest.Sealed(t, "rendered-x", "x", "foreign").Bytes()
		},
	} {
		t.Run(name, func(t *testing.T) {
			dirs := map[store.Store]string{}
			storetest.Run(t, storetest.Implementation{
				Open: func(t *testing.T) store.Store {
					dir := t.TempDir()
					d := open(t, dir)
					dirs[d] = dir
					return d
				},
				Reopen: func(t *testing.T, s store.Store) store.Store {
					d := open(t, dirs[s])
					dirs[d] = dirs[s]
					return d
				},
				Damage: func(t *testing.T, s store.Store, d snapshot.Digest) {
					path := blob(dirs[s], d)
					whole, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, damage(whole), 0o600); err != nil {
						t.Fatal(err)
					}
				},
			})
		})
	}
}

// Held passes as the store it wraps.
func TestHeldAsAStore(t *testing.T) {
	storetest.Run(t, storetest.Implementation{
		Open: func(t *testing.T) store.Store { return store.Hold(open(t, t.TempDir()), 1<<20, quiet) },
	})
}

// The layout is a promise: backups and other tools read it. Field cases 82 and 83: nobody but the owner reads a secret.
func TestLayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	d := open(t, dir)
	s := storetest.Sealed(t, "rendered-worker-0", "worker", "a")
	for _, err := range []error{d.Put(t.Context(), s), d.Select(t.Context(), "worker", s.Digest()), d.MarkServed(t.Context(), s.Digest(), time.Now())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		info, statting := entry.Info()
		if err != nil || statting != nil {
			t.Fatal(err, statting)
		}
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[entry.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
		if !entry.IsDir() {
			got = append(got, strings.TrimPrefix(path, dir+"/"))
		}
		return nil
	})
	hex := s.Digest().Hex()
	want := []string{".lock", "blobs/sha256/" + hex[:2] + "/" + hex + ".json", "names/rendered-worker-0/" + hex, "pools/worker", "served/" + hex}
	if !slices.Equal(got, want) {
		t.Errorf("files\n%v, want\n%v", got, want)
	}
	content, err := os.ReadFile(blob(dir, s.Digest()))
	if err != nil || !bytes.Equal(content, s.Bytes()) {
		t.Errorf("the blob is not the sealed document (%v)", err)
	}
}

// Whatever is lost but the blobs is found again from the blobs.
func TestNotesAreRebuilt(t *testing.T) {
	dir := t.TempDir()
	a, b := storetest.Sealed(t, "rendered-x", "x", "a"), storetest.Sealed(t, "rendered-x", "x", "b")
	d := open(t, dir)
	for _, s := range []*snapshot.Snapshot{a, b} {
		if err := d.Put(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	_ = d.Close()
	if err := os.Remove(filepath.Join(dir, "names/rendered-x", a.Digest().Hex())); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "names/rendered-x", b.Digest().Hex()), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "names/rendered-x/.mcsnap-0123456789abcdef.tmp")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := open(t, dir).Entries(t.Context())
	if err != nil || len(all) != 2 || all[0].Pool != "x" || all[1].Pool != "x" {
		t.Errorf("Entries = %+v, %v", all, err)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("the temporary file of a killed process is left")
	}
}

// While another process has the store open its temporary files are not touched.
func TestTidyingWaitsForOthers(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	unfinished := filepath.Join(dir, "pools/.mcsnap-0123456789abcdef.tmp")
	if err := os.WriteFile(unfinished, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if _, err := os.Stat(unfinished); err != nil {
		t.Error("what another process was writing was removed")
	}
}

// The clock may go back; what was stored last stays the newest.
func TestTheClockGoesBack(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	a, b := storetest.Sealed(t, "rendered-x", "x", "a"), storetest.Sealed(t, "rendered-x", "x", "b")
	if err := d.Put(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	future := fmt.Sprintf(`{"pool":"x","first":%q,"seen":%[1]q}`, time.Now().Add(24*time.Hour).Format(time.RFC3339Nano))
	if err := durable.WriteFile(filepath.Join(dir, "names/rendered-x", a.Digest().Hex()), []byte(future), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Digests(t.Context(), "rendered-x"); err != nil || got[0] != b.Digest() {
		t.Errorf("Digests = %v, %v, want %s first", got, err, b.Digest())
	}
}

func BenchmarkPut(b *testing.B) {
	d := open(b, b.TempDir())
	snapshots := make([]*snapshot.Snapshot, 64)
	for n := range snapshots {
		snapshots[n] = storetest.Sealed(b, fmt.Sprintf("rendered-x-%d", n), "x", strings.Repeat("x", 200_000))
	}
	for n := 0; b.Loop(); n++ {
		if err := d.Put(b.Context(), snapshots[n%len(snapshots)]); err != nil {
			b.Fatal(err)
		}
		if n%len(snapshots) == len(snapshots)-1 {
			b.StopTimer()
			for _, s := range snapshots {
				_ = d.Delete(b.Context(), s.Digest())
			}
			b.StartTimer()
		}
	}
}
