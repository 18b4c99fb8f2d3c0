// SPDX-License-Identifier: Apache-2.0

package durable_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcsnap/mcsnap/snapshot/durable"
	"github.com/mcsnap/mcsnap/snapshot/durable/durabletest"
)

func TestOwnedEntries(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	files, me := durable.With(nil), durable.Owner{UID: os.Geteuid(), GID: os.Getegid()}
	for _, err := range []error{
		files.MkdirOwned(at("folder"), 0o750, me),
		files.MkdirOwned(at("folder"), 0o755, me), // there already: it gets the new mode
		os.WriteFile(at("folder/kept"), []byte("kept"), 0o600),
		os.Symlink("kept", at("folder/program")),
		files.WriteOwned(at("folder/program"), []byte("#!"), 0o755|fs.ModeSetuid, me), // replaces the link
		os.WriteFile(at("folder/unit"), nil, 0o600),
		files.Symlink("/dev/null", at("folder/unit"), me), // replaces the file
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]fs.FileMode{
		"folder":         fs.ModeDir | 0o755,
		"folder/program": 0o755 | fs.ModeSetuid,
	} {
		if info, err := os.Lstat(at(name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v, want mode %v", name, info, err, mode)
		}
	}
	if text, err := os.ReadFile(at("folder/kept")); err != nil || string(text) != "kept" {
		t.Errorf("the target of a replaced link was written to: %q, %v", text, err)
	}
	if target, err := os.Readlink(at("folder/unit")); err != nil || target != "/dev/null" {
		t.Errorf("link to %q, %v", target, err)
	}
	for what, err := range map[string]error{
		"a file over a folder": files.WriteOwned(at("folder"), nil, 0o600, me),
		"a link over a folder": files.Symlink("x", at("folder"), me),
		"a folder over a file": files.MkdirOwned(at("folder/kept"), 0o700, me),
	} {
		if err == nil {
			t.Errorf("%s is no error", what)
		}
	}
}

// Whatever a cut takes of a link's replacement, the old or the new one is there.
func TestLinkAcrossAPowerCut(t *testing.T) {
	for _, loss := range durabletest.Losses {
		for step := 1; step <= 4; step++ {
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink("old", link); err != nil {
				t.Fatal(err)
			}
			disk := &durabletest.Disk{FailAt: step, Dead: true}
			err := durable.With(disk).Symlink("new", link, durable.Owner{UID: os.Geteuid(), GID: os.Getegid()})
			if err == nil {
				t.Fatalf("step %d did not fail: %q", step, disk.Steps())
			}
			disk.PowerCut(loss)
			if target, err := os.Readlink(link); err != nil || target != "old" && target != "new" {
				t.Errorf("cut at step %d, loss %d: %q, %v", step, loss, target, err)
			}
		}
	}
}
