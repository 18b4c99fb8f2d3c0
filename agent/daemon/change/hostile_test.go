// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A config, or an account of the node, that would lead the daemon's hand elsewhere is refused before anything is touched.
func TestRefusedBeforeAnythingIsTouched(t *testing.T) {
	link := func(name, target string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	folder := func(t *testing.T, dir string) {
		if err := os.Mkdir(filepath.Join(dir, "home/core/.ssh"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	keys := config{keys: []string{`"ssh-ed25519 A a"`}}
	for name, tc := range map[string]struct {
		to     config
		before func(*testing.T, string)
		says   string
	}{
		"a unit's name that climbs":    {config{units: []string{unitJSON("../../climbed.service", "[Unit]")}}, nil, "leads out of systemd's folder"},
		"a drop-in's name that climbs": {config{units: []string{`{"name":"a.service","dropins":[{"name":"../../../climbed.conf","contents":"x"}]}`}}, nil, "leads out of systemd's folder"},
		"a link in the place of .ssh":  {keys, link("home/core/.ssh", "/etc"), "/home/core/.ssh is a symbolic link"},
		"a link in the place of the fragments": {keys, func(t *testing.T, dir string) {
			folder(t, dir)
			link("home/core/.ssh/authorized_keys.d", "/etc")(t, dir)
		}, "authorized_keys.d is a symbolic link"},
		"a file of the image without overwrite": {config{files: []string{`{"path":"/etc/passwd","contents":{"source":"data:,S3CR3T"}}`}}, nil,
			"/etc/passwd: a file that no config put there"},
		"a folder of somebody's where the config has a file": {config{files: []string{fileJSON("/etc/theirs", "1")}}, func(t *testing.T, dir string) {
			write(t, dir, "etc/theirs/a/b", "S3CR3T")
		}, "it holds /etc/theirs/a/b, which no config put there"},
		"a file of somebody's where the config has a folder": {config{files: []string{fileJSON("/etc/theirs/a", "1")}}, func(t *testing.T, dir string) {
			write(t, dir, "etc/theirs", "S3CR3T")
		}, "/etc/theirs is a file that no config put there"},
		"a file and another below it": {config{files: []string{fileJSON("/etc/a", "1"), fileJSON("/etc/a/b", "1")}}, nil, "the config has a file there, and others below it"},
		"a link that an account made": {config{files: []string{fileJSON("/home/core/dir/a", "1")}}, link("home/core/dir", "/etc"),
			"/home/core/dir is a symbolic link that others than root can make"},
		"a link in a folder for all": {config{files: []string{fileJSON("/var/open/dir/a", "1")}}, func(t *testing.T, dir string) {
			write(t, dir, "var/open/x", "")
			if err := os.Chmod(filepath.Join(dir, "var/open"), 0o777); err != nil {
				t.Fatal(err)
			}
			link("var/open/dir", "/etc")(t, dir)
		}, "/var/open/dir is a symbolic link that others than root can make"},
		"a link to a link that an account made": {config{files: []string{fileJSON("/etc/one/a", "1")}}, func(t *testing.T, dir string) {
			link("home/core/dir", "/etc")(t, dir)
			link("etc/one", "/home/core/dir")(t, dir)
		}, "/home/core/dir is a symbolic link that others than root can make"},
		"a link into the OS image": {config{files: []string{fileJSON("/etc/alias/a", "1")}}, link("etc/alias", "/usr/lib"), "/usr is the OS image's"},
		"a link to nothing":        {config{files: []string{fileJSON("/etc/alias/a", "1")}}, link("etc/alias", "/srv/nothing"), "leads to no folder"},
	} {
		dir := image(t)
		u := node(t, dir, config{}.seal(t, "1"), nil)
		if tc.before != nil {
			tc.before(t, dir)
		}
		before := tree(t, dir)
		_, err := u.Update(t.Context(), tc.to.seal(t, "2"))
		if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "S3CR3T") {
			t.Errorf("%s: got %v, want it to say %q and to quote nothing", name, err, tc.says)
		}
		if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
			t.Errorf("%s changed the node (-before +after):\n%s", name, diff)
		}
	}
}

// Without overwrite a file may be what it is already, and may replace what a config put there before.
func TestWithoutOverwrite(t *testing.T) {
	same := config{files: []string{`{"path":"/etc/motd","mode":420,"contents":{"source":"data:,the%20image's%20own%0A"}}`}}
	other := config{files: []string{`{"path":"/etc/motd","mode":420,"contents":{"source":"data:,ours"}}`}}
	u := node(t, image(t), config{}.seal(t, "1"), nil)
	for i, to := range []config{same, other} {
		if _, err := u.Update(t.Context(), to.seal(t, string(rune('2'+i)))); err != nil {
			t.Errorf("update %d: %v", i+1, err)
		}
	}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// Links of the image are followed: on many /home and /usr/local are some.
func TestLinksOfTheImage(t *testing.T) {
	dir := image(t)
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "var"), 0o755), os.Rename(filepath.Join(dir, "home"), filepath.Join(dir, "var/home")), os.Symlink("var/home", filepath.Join(dir, "home")),
		os.MkdirAll(filepath.Join(dir, "var/usrlocal"), 0o755), os.Symlink("../var/usrlocal", filepath.Join(dir, "usr/local"))); err != nil {
		t.Fatal(err)
	}
	u := node(t, dir, config{}.seal(t, "1"), nil)
	u.Units = &manager{enabled: map[string]bool{}}
	if _, err := u.Update(t.Context(), config{files: []string{fileJSON("/usr/local/bin/a", "1")}, keys: []string{`"ssh-ed25519 A a"`}}.seal(t, "2")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"var/usrlocal/bin/a", "var/home/core/.ssh/authorized_keys.d/ignition"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// A folder that an update made and that somebody moved away and left a link for: nothing is written through that link, and
// the node says so until the folder is back.
func TestAFolderBecomesALink(t *testing.T) {
	dir := image(t)
	u := node(t, dir, config{}.seal(t, "1"), nil)
	u.Units = &manager{enabled: map[string]bool{}}
	one, two := config{files: []string{fileJSON("/etc/made/a", "1")}}, config{files: []string{fileJSON("/etc/made/a", "2")}}
	if _, err := u.Update(t.Context(), one.seal(t, "2")); err != nil {
		t.Fatal(err)
	}
	made, moved := filepath.Join(dir, "etc/made"), filepath.Join(dir, "var/moved")
	if err := errors.Join(os.Rename(made, moved), os.Symlink("/var/moved", made)); err != nil {
		t.Fatal(err)
	}
	const says = "/etc/made is a symbolic link where an update had made a folder; put the folder back"
	if _, err := u.Update(t.Context(), two.seal(t, "3")); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want it refused", err)
	}
	if drift, err := u.Drift(t.Context()); err != nil || len(drift) != 1 || drift[0] != says {
		t.Errorf("drift: %q, %v", drift, err)
	}
	if text, err := os.ReadFile(filepath.Join(moved, "a")); err != nil || string(text) != "1" {
		t.Errorf("written through the link: %q, %v", text, err)
	}
	if err := errors.Join(os.Remove(made), os.Rename(moved, made)); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Update(t.Context(), two.seal(t, "3")); err != nil {
		t.Error(err)
	}
}
