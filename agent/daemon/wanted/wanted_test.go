// SPDX-License-Identifier: Apache-2.0

package wanted_test

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsnap/mcsnap/agent/daemon/wanted"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

const secret = "S3CR3T"

// rendered seals a config from the JSON of its Ignition section and further members of its spec.
func rendered(t testing.TB, name, ignition string, spec map[string]string) *snapshot.Snapshot {
	t.Helper()
	all := map[string]json.RawMessage{"config": json.RawMessage(ignition)}
	for key, value := range spec {
		all[key] = json.RawMessage(value)
	}
	object, err := json.Marshal(map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
		"metadata": map[string]any{"name": name, "annotations": map[string]string{"machineconfiguration.openshift.io/generated-by-controller-version": "1"}},
		"spec":     all,
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Seal(object, "worker")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t testing.TB, s *snapshot.Snapshot) *wanted.Config {
	t.Helper()
	config, err := wanted.Read(s)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// Each case is two configs, as the members of an Ignition config besides its version, and what of the difference nobody
// can apply. The rest of the specs may differ too.
func TestCheck(t *testing.T) {
	const file = `"storage":{"files":[{"path":"/etc/a","contents":{"source":"data:,x"}}]}`
	for name, tc := range map[string]struct {
		old, new         string
		oldSpec, newSpec map[string]string
		want             []string
	}{
		"files, units and core's keys can change": {
			old: file,
			new: `"storage":{"files":[{"path":"/etc/b","mode":384}]},"systemd":{"units":[{"name":"a.service","mask":true}]},
				"passwd":{"users":[{"name":"core","sshAuthorizedKeys":["ssh-ed25519 A"]}]}`,
		},
		"what is empty is absent": {
			old:     `"kernelArguments":{},"passwd":{"users":[]},"storage":{"links":[]}`,
			oldSpec: map[string]string{"fips": "false", "kernelArguments": "[]", "kernelType": `""`, "extensions": "null"},
		},
		"the rest of the spec": {
			newSpec: map[string]string{"osImageURL": `"registry.example/os@sha256:1"`, "kernelArguments": `["quiet"]`, "extensions": `["usbguard"]`, "fips": "true", "somethingNew": `{"a":1}`},
			want:    []string{"spec.extensions", "spec.fips", "spec.kernelArguments", "spec.osImageURL", "spec.somethingNew"},
		},
		"unchanged things are no matter": {
			old:     `"storage":{"disks":[{"device":"/dev/sda","wipeTable":true}]}`,
			new:     `"storage":{"disks":[{"device":"/dev/sda","wipeTable":true}]},"systemd":{"units":[]}`,
			oldSpec: map[string]string{"osImageURL": `"x"`}, newSpec: map[string]string{"osImageURL": `"x"`},
		},
		"storage but for files": {
			old: `"storage":{"links":[{"path":"/etc/l","target":"/etc/x"}]}`,
			new: `"storage":{"directories":[{"path":"/etc/d","mode":493}],"disks":[{"device":"/dev/sda"}],"luks":[{"name":"root","device":"/dev/sdb"}],
				"filesystems":[{"device":"/dev/sdc","format":"xfs"}],"raid":[{"name":"md","level":"raid1","devices":["/dev/d","/dev/e"]}]}`,
			want: []string{"spec.config.storage.directories[/etc/d]", "spec.config.storage.disks[/dev/sda]", "spec.config.storage.filesystems[/dev/sdc]",
				"spec.config.storage.links[/etc/l]", "spec.config.storage.luks[root]", "spec.config.storage.raid[md]"},
		},
		"accounts but for core's keys": {
			old: `"passwd":{"users":[{"name":"core","sshAuthorizedKeys":["a"]}]}`,
			new: `"passwd":{"groups":[{"name":"ops"}],"users":[{"name":"core","passwordHash":"` + secret + `"},{"name":"bob"}]}`,
			want: []string{"spec.config.passwd.groups[ops]", "spec.config.passwd.users[bob]",
				"spec.config.passwd.users[core]"},
		},
		"Ignition's own settings": {
			new: `"ignition":{"version":"3.4.0","timeouts":{"httpTotal":3},"proxy":{"httpProxy":"http://p"},
				"security":{"tls":{"certificateAuthorities":[{"source":"data:,x"}]}},"config":{"merge":[{"source":"data:,x"}]}},
				"kernelArguments":{"shouldExist":["quiet"]}`,
			want: []string{"spec.config.ignition.config", "spec.config.ignition.proxy", "spec.config.ignition.security",
				"spec.config.ignition.timeouts", "spec.config.kernelArguments"},
		},
		"the config's version alone":          {old: `"ignition":{"version":"3.2.0"}`, new: `"ignition":{"version":"3.5.0"}`},
		"a section only newer Ignitions know": {new: `"storage":{"dreams":[1]},"boot":{"a":1}`, want: []string{"spec.config.boot", "spec.config.storage.dreams"}},
		"a remote source": {
			new:  `"storage":{"files":[{"path":"/etc/a","contents":{"source":"https://example.org/a"}},{"path":"/etc/b","append":[{"source":"https://example.org/b"}]}]}`,
			want: []string{"spec.config.storage.files[/etc/a] (a remote source: only contents within the config are applied)", "spec.config.storage.files[/etc/b] (a remote source: only contents within the config are applied)"},
		},
		"a remote source that was there before": {
			old: `"storage":{"files":[{"path":"/etc/a","contents":{"source":"https://example.org/a"}}]}`,
			new: `"storage":{"files":[{"path":"/etc/a","contents":{"source":"https://example.org/a"}}]}`,
		},
		"mcsnap's own files": {
			new:  `"storage":{"files":[{"path":"/etc/mcd-snapshot.json"},{"path":"/var/lib/mcsnap/daemon/record.json"}]}`,
			want: []string{"spec.config.storage.files[/etc/mcd-snapshot.json] (mcsnap's own)", "spec.config.storage.files[/var/lib/mcsnap/daemon/record.json] (mcsnap's own)"},
		},
	} {
		config := func(members string) string {
			if !strings.Contains(members, `"ignition"`) {
				members = strings.TrimSuffix(`"ignition":{"version":"3.4.0"},`+members, ",")
			}
			return "{" + members + "}"
		}
		old := read(t, rendered(t, "rendered-worker-1", config(tc.old), tc.oldSpec))
		err := wanted.Check(old, read(t, rendered(t, "rendered-worker-2", config(tc.new), tc.newSpec)))
		var got []string
		if refused, is := errors.AsType[*wanted.UnreconcilableError](err); is {
			got = refused.Fields
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error quotes a value: %v", name, err)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRead(t *testing.T) {
	config := read(t, rendered(t, "rendered-worker-1", `{"ignition":{"version":"3.6.0"},
		"storage":{"files":[{"path":"/etc/a","overwrite":true,"mode":2541,"user":{"name":"core"},"group":{"id":7},"contents":{"source":"`+contents.Base64(contents.Compress([]byte("one\n")))+`","compression":"gzip"},"append":[{"source":"data:,two"}]},{"path":"/etc/b"}]},
		"systemd":{"units":[{"name":"a.service","contents":"[Unit]","enabled":true,"mask":false,"dropins":[{"name":"x.conf","contents":""},{"name":"y.conf"}]}]}}`, nil))
	a := config.Files["/etc/a"]
	if text, err := a.Bytes([]byte("before")); err != nil || string(text) != "one\ntwo" {
		t.Errorf("/etc/a: %q, %v", text, err)
	}
	if a.Mode.String() != "urwxr-xr-x" || a.User.Name != "core" || *a.Group.ID != 7 || !a.Overwrite {
		t.Errorf("/etc/a: %+v, mode %v", a, a.Mode)
	}
	if b := config.Files["/etc/b"]; b.Contents != nil || b.Mode != nil {
		t.Errorf("/etc/b: %+v", b)
	}
	unit := config.Units["a.service"]
	if got := maps.Collect(maps.All(unit.Dropins)); !cmp.Equal(got, map[string]string{"x.conf": ""}) || !*unit.Enabled || unit.Masked() {
		t.Errorf("a.service: %+v", unit)
	}
}

// What no Ignition would take, or what would lead out of its folder, is refused; no error quotes a value.
func TestInvalid(t *testing.T) {
	for name, tc := range map[string]struct{ ignition, says string }{
		"no version":         {`{"ignition":{"version":"x"}}`, "spec.config.ignition.version"},
		"spec 2":             {`{"ignition":{"version":"2.2.0"}}`, "only spec 3 is applied"},
		"two files":          {`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/a"},{"path":"/a"}]}}`, "spec.config"},
		"a relative path":    {`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"etc/` + secret + `"}]}}`, "spec.config"},
		"a path that climbs": {`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/../../x"}]}}`, "spec.config.storage.files"},
		"a unit that climbs": {`{"ignition":{"version":"3.4.0"},"systemd":{"units":[{"name":"../x.service"}]}}`, "spec.config.systemd.units"},
		"a drop-in that climbs": {`{"ignition":{"version":"3.4.0"},"systemd":{"units":[{"name":"x.service","dropins":[{"name":"../../../x.conf","contents":""}]}]}}`,
			"spec.config.systemd.units"},
		"a wrong type": {`{"ignition":{"version":"3.4.0"},"storage":{"files":"` + secret + `"}}`, "spec.config"},
	} {
		_, err := wanted.Read(rendered(t, "rendered-worker-1", tc.ignition, nil))
		if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v, want it to say %q and no value", name, err, tc.says)
		}
	}
}

func TestContentIsVerified(t *testing.T) {
	config := read(t, rendered(t, "rendered-worker-1", `{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/a","contents":{"source":"data:,`+secret+`","verification":{"hash":"`+contents.Verification([]byte("other"))+`"}}}]}}`, nil))
	if _, err := config.Files["/etc/a"].Bytes(nil); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("content of another hash: %v", err)
	}
}
