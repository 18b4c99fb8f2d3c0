// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsnap/mcsnap/snapshot"
)

// What a running node cannot be brought to is refused with the whole list, before anything is touched.
func TestUnreconcilable(t *testing.T) {
	remote := `{"path":"/etc/remote","overwrite":true,"mode":420,"contents":{"source":"https://example.com/x","verification":{"hash":"sha512-` + strings.Repeat("0", 128) + `"}}}`
	for name, test := range map[string]struct {
		from, to config
		changes  []string
	}{
		"OS image":                     {config{spec: `,"osImageURL":"a"`}, config{spec: `,"osImageURL":"b"`}, []string{"spec.osImageURL changed"}},
		"kernel arguments":             {config{}, config{spec: `,"kernelArguments":["quiet"]`}, []string{"spec.kernelArguments changed"}},
		"kernel arguments go":          {config{spec: `,"kernelArguments":["quiet"]`}, config{spec: `,"kernelArguments":[]`}, []string{"spec.kernelArguments changed"}},
		"extensions and more":          {config{}, config{spec: `,"extensions":["usbguard"],"fips":true,"kernelType":"realtime"`}, []string{"spec.extensions changed", "spec.fips changed", "spec.kernelType changed"}},
		"unknown field":                {config{}, config{spec: `,"ofTomorrow":{"a":1}`}, []string{"spec.ofTomorrow changed"}},
		"empty is not there":           {config{spec: `,"extensions":[],"fips":false,"kernelType":""`}, config{}, nil},
		"kernel arguments in Ignition": {config{}, config{sections: `,"kernelArguments":{"shouldExist":["a"]}`}, []string{"spec.config.kernelArguments changed"}},
		"remote source":                {config{}, config{files: []string{remote}}, []string{"/etc/remote: its contents are at another URL"}},
		"remote source stays":          {config{files: []string{remote}}, config{files: []string{remote, fileJSON("/etc/a", "1")}}, nil},
		"unknown owner":                {config{}, config{files: []string{strings.Replace(fileJSON("/etc/a", "1"), `"mode"`, `"user":{"name":"nobody-here"},"mode"`, 1)}}, []string{`/etc/a: its owner "nobody-here" is no user of this node`}},
		"the OS image's /usr":          {config{}, config{files: []string{fileJSON("/usr/bin/a", "1")}}, []string{"/usr/bin/a: /usr is the OS image's"}},
		"this daemon's own":            {config{}, config{files: []string{fileJSON("/var/lib/mcsnap/current.json", "1")}}, []string{"it is this daemon's own"}},
		"two at once":                  {config{}, config{spec: `,"osImageURL":"b"`, files: []string{remote}}, []string{"spec.osImageURL", "/etc/remote"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := image(t)
			u := node(t, dir, test.from.seal(t, "1"), nil)
			u.Units = &manager{enabled: map[string]bool{}}
			want := tree(t, dir)
			_, err := u.Update(t.Context(), test.to.seal(t, "2"))
			refused, is := errors.AsType[*UnreconcilableError](err)
			if len(test.changes) == 0 {
				if err != nil {
					t.Fatalf("got %v, want it done", err)
				}
				return
			}
			if !is {
				t.Fatalf("got %v, want it refused", err)
			}
			for _, change := range refused.Changes {
				if !slices.ContainsFunc(test.changes, func(text string) bool { return strings.Contains(change, text) }) {
					t.Errorf("lists %q, which was not asked for", change)
				}
			}
			for _, text := range test.changes[:1] {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v: does not list %q", err, text)
				}
			}
			if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
				t.Errorf("touched before it was refused:\n%s", diff)
			}
		})
	}
}

func TestDrift(t *testing.T) {
	const overlaid = "/etc/kubernetes/ca.crt"
	c := config{
		files: []string{fileJSON("/etc/a", "1"), fileJSON("/etc/b", "2"), fileJSON(overlaid, "rendered"), `{"path":"/etc/chrony1.conf","append":[{"source":"data:,z"}]}`},
		units: []string{unitJSON("a.service", service("a")), unitJSON("m.service", "", masked)},
	}
	for name, test := range map[string]struct {
		do   func(dir string) error
		says string
	}{
		"nothing":       {func(string) error { return nil }, ""},
		"content":       {func(dir string) error { return os.WriteFile(dir+"/etc/a", []byte("x"), 0o644) }, "/etc/a has other content"},
		"missing":       {func(dir string) error { return os.Remove(dir + "/etc/a") }, "/etc/a is missing"},
		"mode":          {func(dir string) error { return os.Chmod(dir+"/etc/a", 0o600) }, "/etc/a has mode 0600, want 0644"},
		"owner":         {func(dir string) error { return os.Chown(dir+"/etc/a", 5, 0) }, "/etc/a belongs to 5:0, want 0:0"},
		"unit":          {func(dir string) error { return os.Remove(dir + "/etc/systemd/system/a.service") }, "a.service is missing"},
		"unmasked":      {func(dir string) error { return os.Remove(dir + "/etc/systemd/system/m.service") }, "m.service is missing"},
		"appended part": {func(dir string) error { return os.WriteFile(dir+"/etc/chrony1.conf", []byte("x"), 0o644) }, "does not end with"},
		"a folder":      {func(dir string) error { return errors.Join(os.Remove(dir+"/etc/a"), os.Mkdir(dir+"/etc/a", 0o755)) }, "/etc/a is no file"},
		// Field case 24: a CA that was rotated differs on purpose.
		"an overlay": {func(dir string) error { return os.WriteFile(dir+overlaid, []byte("rotated"), 0o644) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := image(t)
			u := node(t, dir, config{}.seal(t, "0"), nil)
			u.Units = &manager{enabled: map[string]bool{}}
			if _, err := u.Update(t.Context(), c.seal(t, "1")); err != nil {
				t.Fatal(err)
			}
			overlay := c.seal(t, "1").WithOverlays([]snapshot.Overlay{{Path: overlaid, Reason: "controllerconfig", SHA256: strings.Repeat("0", 64)}})
			if err := os.WriteFile(filepath.Join(dir, currentPath), overlay.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := test.do(dir); err != nil {
				t.Fatal(err)
			}
			drift, err := u.Drift(t.Context())
			if err != nil || (len(drift) == 0) != (test.says == "") || !strings.Contains(strings.Join(drift, "; "), test.says) {
				t.Errorf("got %q, %v; want %q", drift, err, test.says)
			}
		})
	}
}

// Field case 9: an update starts from what is on disk. What drifted, and what an abandoned config left half-way, is mended by
// the next one; an overlay stays as it is until the config itself changes that file.
func TestUpdateMendsDriftAndLeavesOverlays(t *testing.T) {
	dir := image(t)
	one := config{files: []string{fileJSON("/etc/a", "1"), fileJSON("/etc/ca1", "rendered"), fileJSON("/etc/ca2", "rendered")}}
	two := config{files: []string{fileJSON("/etc/a", "1"), fileJSON("/etc/ca1", "rendered"), fileJSON("/etc/ca2", "newly")}}
	for name, content := range map[string]string{"a": "drifted", "ca1": "rotated", "ca2": "rotated"} {
		if err := os.WriteFile(filepath.Join(dir, "etc", name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	u := node(t, dir, one.seal(t, "1").WithOverlays([]snapshot.Overlay{{Path: "/etc/ca1", Reason: "x", SHA256: ""}, {Path: "/etc/ca2", Reason: "x", SHA256: ""}}), nil)
	u.Units = &manager{enabled: map[string]bool{}}
	if _, err := u.Update(t.Context(), two.seal(t, "2")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "1", "ca1": "rotated", "ca2": "newly"} {
		if got, err := os.ReadFile(filepath.Join(dir, "etc", name)); err != nil || string(got) != want {
			t.Errorf("/etc/%s is %q, %v; want %q", name, got, err, want)
		}
	}
	s, err := u.Current()
	if err != nil || len(s.Overlays()) != 1 || s.Overlays()[0].Path != "/etc/ca1" {
		t.Errorf("overlays: %v, %v", s.Overlays(), err)
	}
}

// The image's own file comes back with its mode and owner, through any number of configs that replaced it.
func TestOriginalComesBack(t *testing.T) {
	dir := image(t)
	motd := filepath.Join(dir, "etc/motd")
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "usr/etc")), os.Chmod(motd, 0o640), os.Chown(motd, 0, 10)); err != nil {
		t.Fatal(err)
	}
	want := tree(t, dir)
	u := node(t, dir, config{}.seal(t, "0"), nil)
	u.Units = &manager{enabled: map[string]bool{}}
	for i, content := range []string{"one", "two", "three", ""} {
		c := config{}
		if content != "" {
			c.files = []string{fileJSON("/etc/motd", content)}
		}
		if _, err := u.Update(t.Context(), c.seal(t, string(rune('1'+i)))); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("(-image +after):\n%s", diff)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, originalsDir)); err != nil || len(entries) > 0 {
		t.Errorf("kept for nothing: %v, %v", entries, err)
	}
}
