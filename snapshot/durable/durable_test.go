// SPDX-License-Identifier: Apache-2.0

package durable_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mcsnap/mcsnap/snapshot/durable"
	"github.com/mcsnap/mcsnap/snapshot/durable/durabletest"
)

// The steps are those of the package comment, in that order.
func TestTheSteps(t *testing.T) {
	dir := t.TempDir()
	disk := &durabletest.Disk{}
	if err := durable.With(disk).WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o640); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, step := range disk.Steps() {
		operation, _, _ := strings.Cut(step, " ")
		got = append(got, operation)
	}
	want := []string{"create", "chmod", "write", "fsync", "close", "rename", "sync"}
	if !slices.Equal(got, want) {
		t.Errorf("steps %v, want %v", got, want)
	}
}

func TestWriteFile(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	path := filepath.Join(t.TempDir(), "a")
	for _, c := range []struct {
		data string
		mode fs.FileMode
	}{{"one", 0o600}, {"", 0o644}, {strings.Repeat("two", 100_000), 0o755}, {"three", 0o400}, {"four", 0o600}} {
		if err := durable.WriteFile(path, []byte(c.data), c.mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != c.mode {
			t.Errorf("mode %v (%v), want %v", info.Mode(), err, c.mode)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != c.data {
			t.Errorf("%d bytes (%v), want %d", len(got), err, len(c.data))
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("%d files are left, want 1", len(left))
	}
}

// What is not a regular file is not replaced: a link would be cut, a device lost.
func TestWriteFileRefuses(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := errors.Join(os.WriteFile(target, []byte("kept"), 0o600), os.Symlink(target, filepath.Join(dir, "link")),
		os.Mkdir(filepath.Join(dir, "folder"), 0o700), syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{"link": "symbolic link", "folder": "a folder", "pipe": "special file"} {
		err := durable.WriteFile(filepath.Join(dir, name), []byte("new"), 0o600)
		if _, is := errors.AsType[*durable.NotRegularError](err); !is || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want a NotRegularError with %q", name, err, says)
		}
	}
	if err := durable.WriteFile(filepath.Join(dir, "missing", "a"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is missing: %v", err)
	}
	if got, _ := os.ReadFile(target); string(got) != "kept" {
		t.Errorf("the link's target is now %q", got)
	}
}

// Whatever step the power fails at, and whatever the disk makes of it: the file is the old one or the new one, and the
// new one once WriteFile has returned nil.
func TestPowerCutAtEveryStep(t *testing.T) {
	was, is := []byte("the old contents"), bytes.Repeat([]byte("new"), 50_000)
	for _, existing := range []bool{true, false} {
		for _, done := range []bool{false, true} {
			for _, loss := range durabletest.Losses {
				for step := 1; step <= 8; step++ {
					name := fmt.Sprintf("existing=%v done=%v loss=%d step=%d", existing, done, loss, step)
					path := filepath.Join(t.TempDir(), "a")
					if existing {
						if err := durable.WriteFile(path, was, 0o600); err != nil {
							t.Fatal(err)
						}
					}
					disk := &durabletest.Disk{FailAt: step, Done: done, Dead: true}
					err := durable.With(disk).WriteFile(path, is, 0o600)
					if (err == nil) != (step == 8) {
						t.Fatalf("%s: %v", name, err)
					}
					disk.PowerCut(loss)
					got, reading := os.ReadFile(path)
					switch {
					case err == nil && !bytes.Equal(got, is):
						t.Errorf("%s: acknowledged and lost: %d bytes, %v", name, len(got), reading)
					case existing && !bytes.Equal(got, was) && !bytes.Equal(got, is):
						t.Errorf("%s: neither old nor new: %d bytes, %v", name, len(got), reading)
					case !existing && reading == nil && !bytes.Equal(got, is):
						t.Errorf("%s: a part: %d bytes", name, len(got))
					}
					if err := durable.With(nil).Sweep(filepath.Dir(path)); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					left, _ := os.ReadDir(filepath.Dir(path))
					for _, entry := range left {
						if entry.Name() != "a" {
							t.Errorf("%s: %s is left", name, entry.Name())
						}
					}
				}
			}
		}
	}
}

// Without the sync of file and folder this very test of ours would fail: the oracle can tell.
func TestTheDiskNoticesAMissingSync(t *testing.T) {
	for loss, lost := range map[durabletest.Loss]bool{durabletest.LoseData: true, durabletest.LoseNames: true, durabletest.KeepAll: false} {
		dir := t.TempDir()
		disk := &durabletest.Disk{}
		file, err := disk.Create(filepath.Join(dir, "t"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(file.Close(), disk.Rename(filepath.Join(dir, "t"), filepath.Join(dir, "a"))); err != nil {
			t.Fatal(err)
		}
		disk.PowerCut(loss)
		if got, _ := os.ReadFile(filepath.Join(dir, "a")); (string(got) != "x") != lost {
			t.Errorf("loss %d: contents %q", loss, got)
		}
	}
}

// An error, unlike a cut, leaves no temporary file behind and is passed on, a full disk as what it is.
func TestFailAtEveryStep(t *testing.T) {
	for step := 1; step <= 7; step++ {
		path := filepath.Join(t.TempDir(), "a")
		if err := durable.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		disk := &durabletest.Disk{FailAt: step, Err: syscall.ENOSPC}
		if err := durable.With(disk).WriteFile(path, []byte("new"), 0o600); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), path) {
			t.Errorf("step %d: %v", step, err)
		}
		got, _ := os.ReadFile(path)
		if want := map[bool]string{true: "new", false: "old"}[step == 7]; string(got) != want {
			t.Errorf("step %d: %q, want %q", step, got, want)
		}
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
			t.Errorf("step %d: %d files are left", step, len(left))
		}
	}
}

func TestMkdirAllAndRemoveSurviveACut(t *testing.T) {
	dir := t.TempDir()
	disk := &durabletest.Disk{}
	files := durable.With(disk)
	path := filepath.Join(dir, "a", "b")
	if err := errors.Join(files.MkdirAll(path, 0o700), files.MkdirAll(path, 0o755), files.WriteFile(filepath.Join(path, "f"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	if err := errors.Join(files.Rename(filepath.Join(path, "f"), filepath.Join(dir, "g")), files.Remove(filepath.Join(dir, "g")), files.Remove(filepath.Join(dir, "g"))); err != nil {
		t.Fatal(err)
	}
	disk.PowerCut(durabletest.LoseAll)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("made and lost: %v", err)
	}
	for _, gone := range []string{filepath.Join(dir, "g"), filepath.Join(path, "f")} {
		if _, err := os.Stat(gone); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("removed, and there again: %s (%v)", gone, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := durable.MkdirAll(filepath.Join(dir, "file"), 0o700); err == nil {
		t.Error("a folder in a file's place")
	}
}

func TestIsTemporary(t *testing.T) {
	for name, want := range map[string]bool{
		".mcsnap-0123456789abcdef.tmp": true, ".mcsnap-.tmp": false, "mcsnap-0123456789abcdef.tmp": false,
		".mcsnap-0123456789abcdeg.tmp": false, "a.tmp": false, "": false,
	} {
		if durable.IsTemporary(name) != want {
			t.Errorf("IsTemporary(%q) = %v", name, !want)
		}
	}
}
