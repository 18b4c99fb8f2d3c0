// SPDX-License-Identifier: Apache-2.0

package change

import (
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
