// SPDX-License-Identifier: Apache-2.0

package units_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsnap/mcsnap/agent/daemon/tree"
	"github.com/mcsnap/mcsnap/agent/daemon/units"
	"github.com/mcsnap/mcsnap/agent/root"
)

// onDisk is a node's files as they are.
type onDisk struct{ *root.Root }

func (d onDisk) Read(name string) (tree.State, []byte, error) { return tree.Read(d.Root, name) }

// unit files of a root on which systemctl is asked too.
var files = map[string]string{
	"etc/systemd/system/plain.service":              "[Unit]\nWantedBy=not.here\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target \\\n  graphical.target\nRequiredBy=a.target\n",
	"usr/lib/systemd/system/alias.service":          "[Service]\nExecStart=/bin/true\n[Install]\nAlias=other.service\nAlso=plain.service\n",
	"usr/lib/systemd/system/dropped.service":        "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n",
	"etc/systemd/system/dropped.service.d/10.conf":  "[Install]\nWantedBy=\nWantedBy=late.target\n",
	"usr/lib/systemd/system/echo@.service":          "[Service]\nExecStart=/bin/echo %i\n[Install]\nWantedBy=echo-%i.target\nDefaultInstance=standard\n",
	"usr/lib/systemd/system/static.service":         "[Service]\nExecStart=/bin/true\n",
	"usr/lib/systemd/system/plain.service":          "[Install]\nWantedBy=hidden.target\n",
	"etc/systemd/system/commented.service":          "[Service]\nExecStart=/bin/true\n[Install]\n# WantedBy=x.target\n;WantedBy=y.target\nWantedBy=z.target\n",
	"etc/systemd/system-preset/20-ignition.preset":  "enable echo@.service one two\ndisable plain.service\n",
	"usr/lib/systemd/system-preset/10-early.preset": "enable static.service\n",
	"usr/lib/systemd/system-preset/99-last.preset":  "disable *\n",
}

func node(t *testing.T) (onDisk, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := root.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return onDisk{opened}, dir
}

// The links are those that the real systemctl makes, and what enables a unit is what it removes.
func TestLinksAreSystemctls(t *testing.T) {
	for _, unit := range []string{"plain.service", "alias.service", "dropped.service", "echo@one.service", "echo@.service", "static.service", "commented.service"} {
		files, dir := node(t)
		want, err := units.Links(files, unit)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("systemctl", "--root="+dir, "enable", unit).CombinedOutput(); err != nil {
			t.Fatalf("systemctl enable %s: %v: %s\nif it is not installed: e2e/lab/packages systemd", unit, err, out)
		}
		if diff := cmp.Diff(links(t, dir), slices.Sorted(maps.Keys(want))); diff != "" {
			t.Errorf("%s: systemctl's links (-) and ours (+):\n%s", unit, diff)
		}
		for _, enabled := range []string{unit, "plain.service", "echo@standard.service"} {
			found, err := units.Enabling(files, enabled)
			if err != nil {
				t.Fatal(err)
			}
			for _, link := range found {
				if err := os.Remove(filepath.Join(dir, link)); err != nil {
					t.Error(err)
				}
			}
		}
		if left := links(t, dir); len(left) > 0 {
			t.Errorf("%s: links left that enable it: %q", unit, left)
		}
	}
}

func links(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "etc/systemd/system"), func(at string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type()&os.ModeSymlink != 0 {
			found = append(found, strings.TrimPrefix(at, dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestLinksOfBadUnits(t *testing.T) {
	files, dir := node(t)
	for name, text := range map[string]string{
		"climbs.service":   "[Install]\nWantedBy=../../../../tmp/x.target\nAlias=/etc/passwd.service\nAlso=..\n",
		"unending.service": "[Install]\nAlso=unending.service climbs.service\nAlso=unending.service\n",
		"garbage.service":  "[Install\nWantedBy\n===\n\x00\n[Install]\n=x\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "etc/systemd/system", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := units.Links(files, name); err != nil || len(got) > 0 {
			t.Errorf("%s: %v, %v, want no links", name, got, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "etc/systemd/system/odd.service"), []byte("[Install]\nWantedBy=%H.target\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := units.Links(files, "odd.service"); err == nil {
		t.Error("a specifier that is not known is no error")
	}
}

func TestPreset(t *testing.T) {
	files, _ := node(t)
	for unit, want := range map[string]bool{
		"plain.service": false, "static.service": true, "echo@one.service": true, "echo@three.service": false, "else.service": false,
	} {
		if got, err := units.Preset(files, unit); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", unit, got, err, want)
		}
	}
}

func TestEditPreset(t *testing.T) {
	yes, no := true, false
	for name, tc := range map[string]struct {
		text  string
		units map[string]*bool
		want  string
	}{
		"a new file":           {"", map[string]*bool{"b.service": &yes, "a.service": &no}, "disable a.service\nenable b.service\n"},
		"nothing":              {"", map[string]*bool{"a.service": nil}, ""},
		"the last rule goes":   {"enable a.service\n", map[string]*bool{"a.service": nil}, ""},
		"others stay":          {"# by hand\nenable mcsnap-firstboot.service\nenable a.service\n", map[string]*bool{"a.service": &no}, "# by hand\nenable mcsnap-firstboot.service\ndisable a.service\n"},
		"instances share":      {"enable e@.service one theirs\n", map[string]*bool{"e@one.service": nil, "e@two.service": &yes, "e@three.service": &yes}, "enable e@.service theirs three two\n"},
		"an instance switches": {"enable e@.service one\n", map[string]*bool{"e@one.service": &no}, "disable e@.service one\n"},
	} {
		if diff := cmp.Diff(tc.want, string(units.EditPreset([]byte(tc.text), tc.units))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
