// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
	"github.com/mcsnap/mcsnap/systemd"
)

// A config that cannot be served gets one line that names the field, holds Ignition's own finding where there is one, and
// quotes nothing.
func TestBadConfigs(t *testing.T) {
	const secret = "S3CR3T"
	file := func(more string) string {
		return `{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"/a","mode":420,"contents":{"source":"data:,` + secret + `"}}` + more + `]}}`
	}
	inner := func(doc string) string { return contents.Base64([]byte(doc)) }
	tests := []struct{ name, config, want string }{
		{"two files for one path", file(`,{"path":"/a"}`), "spec.config: Ignition says: storage.files.1: duplicate entry defined"},
		{"a file and a link", strings.Replace(file(""), `"files"`, `"links":[{"path":"/a","target":"/b"}],"files"`, 1), "duplicate entry defined"},
		{"a path that is not clean", file(`,{"path":"/etc/../etc/b"}`), "spec.config: Ignition says: storage.files.1.path: "},
		{"our path, not clean", file(`,{"path":"/etc/../etc/mcd-snapshot.json"}`), "spec.config: Ignition says: storage.files.1.path: "},
		{"a relative path", file(`,{"path":"b"}`), "storage.files.1.path: path not absolute"},
		{"a unit that is none", `{"ignition":{"version":"3.5.0"},"systemd":{"units":[{"name":"a.service","contents":"[` + secret + `"}]}}`, "systemd.units.0.contents: invalid unit content"},
		{"unknown version", `{"ignition":{"version":"3.9.0"}}`, `spec.config: ignition.version: Ignition spec version "3.9.0" is not served`},
		{"version 2", `{"ignition":{"version":"2.2.0"}}`, "spec.config.ignition.version: configs rendered in spec 2.2.0 are not served"},
		{"a wrong hash", strings.Replace(file(""), secret+`"`, secret+`","verification":{"hash":"sha256-`+strings.Repeat("0", 64)+`"}`, 1),
			"spec.config.storage.files.0 (/a).contents.verification.hash: the contents have another hash"},
		{"gzip that is none", strings.Replace(file(""), secret+`"`, secret+`","compression":"gzip"`, 1), "spec.config.storage.files.0 (/a).contents: inflating the contents"},
		{"a nested config that is none", `{"ignition":{"version":"3.5.0","config":{"merge":[{"source":"` + inner(secret) + `"}]}}}`, "spec.config.ignition.config.merge.0: the config inside: "},
		{"a nested config with a wrong field", `{"ignition":{"version":"3.5.0","config":{"replace":{"source":"` + inner(`{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"b"}]}}`) + `"}}}}`,
			"spec.config.ignition.config.replace: the config inside: Ignition says: storage.files.0.path: path not absolute"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := compose.Compose(everything(seal(t, tt.config)), specver.V3_4)
			var invalid *compose.InvalidConfigError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v\nwant an InvalidConfigError with %q", err, tt.want)
			}
			if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "rendered-worker-") {
				t.Errorf("the error quotes the config, has several lines or does not name it: %q", err)
			}
		})
	}
}

// What the node writes for itself, or takes for a sign that it has joined, no config may bring: the machine would boot and
// never hand over.
func TestReservedPaths(t *testing.T) {
	for _, storage := range []string{
		`"files":[{"path":"/etc/machine-config-daemon/node-annotations.json.bak","contents":{"source":"data:,x"}}]`,
		`"directories":[{"path":"/var/lib/kubelet/pki/kubelet-client-current.pem"}]`,
		`"links":[{"path":"/etc/machine-config-daemon/currentconfig","target":"/x"}]`,
		`"files":[{"path":"/etc/machine-config-daemon/currentconfig","contents":{"source":"data:,x"}}]`,
		`"links":[{"path":"/var/lib/mcsnap","target":"/x"}]`,
		`"files":[{"path":"/var/lib/mcsnap"}]`,
		`"directories":[{"path":"/var/lib/mcsnap/handover.json"}]`,
	} {
		_, err := compose.Compose(everything(seal(t, `{"ignition":{"version":"3.5.0"},"storage":{`+storage+`}}`)), specver.V3_4)
		var invalid *compose.InvalidConfigError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "is for the node alone") {
			t.Errorf("%s: got %v, want an InvalidConfigError that says whose the path is", storage, err)
		}
	}
	allowed := `{"ignition":{"version":"3.5.0"},"storage":{"directories":[{"path":"/var/lib/mcsnap","mode":448},{"path":"/var/lib/kubelet/pki"}]}}`
	if _, err := compose.Compose(everything(seal(t, allowed)), specver.V3_4); err != nil {
		t.Errorf("folders around them: %v", err)
	}
}

// A path of ours that the config uses for something else is refused, whatever stands in the way (issue 2, bad input).
func TestPathsTaken(t *testing.T) {
	tests := []struct{ storage, path, as string }{
		{`"directories":[{"path":"/etc/mcd-snapshot.json"}]`, snapshot.Path, "directory"},
		{`"links":[{"path":"/etc/mcd-snapshot.json","target":"/x"}]`, snapshot.Path, "link"},
		{`"files":[{"path":"/etc/mcd-snapshot.json/inside"}]`, snapshot.Path, "directory"},
		{`"links":[{"path":"/etc/kubernetes/kubeconfig","target":"/x","hard":true}]`, compose.KubeconfigPath, "link"},
		{`"directories":[{"path":"/etc/machine-config-daemon/node-annotations.json/x"}]`, compose.AnnotationsPath, "directory"},
		{`"links":[{"path":"/etc/machine-config-daemon","target":"/var/x"}]`, "/etc/machine-config-daemon", "link above " + compose.AnnotationsPath},
		{`"files":[{"path":"/etc/mcsnap","contents":{"source":"data:,x"}}]`, "/etc/mcsnap", "file above " + compose.AgentConfigPath},
		{`"directories":[{"path":"/usr/local/bin/mcsnap-agent"}]`, systemd.AgentPath, "directory"},
		{`"links":[{"path":"/etc/systemd/system/mcsnap-firstboot.service","target":"/dev/null"}]`, "/etc/systemd/system/mcsnap-firstboot.service", "link"},
	}
	for _, tt := range tests {
		_, err := compose.Compose(everything(seal(t, `{"ignition":{"version":"3.5.0"},"storage":{`+tt.storage+`}}`)), specver.V3_5)
		var taken *snapshot.PathTakenError
		if !errors.As(err, &taken) || taken.Path != tt.path || taken.As != tt.as {
			t.Errorf("%s: got %v, want %s taken as a %s", tt.storage, err, tt.path, tt.as)
		}
	}
}

// Files of ours that the config has are replaced, never doubled; the overlays say what differs from the rendered config on
// purpose, with the hash of what is served, and change no digest (field case 24).
func TestOverlays(t *testing.T) {
	f := load(t, "testdata/ours.yaml")
	body, err := compose.Compose(everything(f.snapshot), specver.V3_5)
	if err != nil {
		t.Fatal(err)
	}
	nodes := open(t, body.JSON, specver.V3_5).Nodes
	inside, err := snapshot.Open([]byte(nodes[snapshot.Path].Contents))
	if err != nil {
		t.Fatal(err)
	}
	if inside.Digest() != f.snapshot.Digest() {
		t.Errorf("overlays changed the digest: %s, want %s", inside.Digest(), f.snapshot.Digest())
	}
	reasons := map[string]string{}
	for _, o := range inside.Overlays() {
		reasons[o.Path] = o.Reason
		if got := hashOf(nodes[o.Path].Contents); o.Path != systemd.AgentPath && got != o.SHA256 {
			t.Errorf("%s: the overlay has sha256 %s, what is served %s", o.Path, o.SHA256, got)
		}
	}
	want := map[string]string{
		"/etc/kubernetes/kubeconfig":                       "credentials",
		"/etc/kubernetes/kubelet-ca.crt":                   "controllerconfig",
		"/etc/machine-config-daemon/node-annotations.json": "mcsnap",
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if n := strings.Count(string(body.JSON), `"path":"/etc/mcd-snapshot.json"`); n != 1 {
		t.Errorf("%d entries for the snapshot", n)
	}
	if ca := nodes["/etc/kubernetes/kubelet-ca.crt"]; ca.Mode != 0o600 || ca.UID != 65534 {
		t.Errorf("the newer CA does not keep the rendered file's mode and owner: %+v", ca)
	}
	if k := nodes["/etc/kubernetes/kubeconfig"]; k.Mode != 0o600 {
		t.Errorf("the kubeconfig has mode %o", k.Mode)
	}

	rotated := everything(f.snapshot)
	rotated.Files[0].Contents = []byte("-----BEGIN CERTIFICATE-----\nnewer\n")
	again, err := compose.Compose(rotated, specver.V3_5)
	if err != nil {
		t.Fatal(err)
	}
	if again.Digest != body.Digest || again.ETag == body.ETag {
		t.Errorf("a rotated CA changed the snapshot's digest, or not the body")
	}
}

// What is not given is not added.
func TestLeaveOut(t *testing.T) {
	f := load(t, "testdata/files.yaml")
	body, err := compose.Compose(compose.Inputs{Snapshot: f.snapshot}, specver.V3_5)
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, body.JSON, specver.V3_5)
	for _, p := range added {
		_, there := d.Nodes[p]
		want := p == snapshot.Path || p == compose.AnnotationsPath || p == compose.EncapsulatedPath
		if there != want {
			t.Errorf("%s: there %v, want %v", p, there, want)
		}
	}
	if unit := d.Units[systemd.FirstbootName]; unit != "enabled: " {
		t.Errorf("without an agent the OS image's own unit is to be enabled, got %q", unit)
	}
}

// One agent per architecture, each under its own name, gzip where the version reads it, always pinned by sha512.
func TestAgents(t *testing.T) {
	in := everything(load(t, "testdata/files.yaml").snapshot)
	other := strings.Repeat("cd", 64)
	in.Agents = append(in.Agents, compose.Agent{Arch: "arm64", URL: "https://mcs.example:22623/agent/sha512-" + other, SHA512: other})
	for v, suffix := range map[specver.Version]string{specver.V3_5: ".gz gzip", specver.V3_1: ".gz gzip", specver.V3_0: " ", specver.V2_2: " "} {
		body, err := compose.Compose(in, v)
		if err != nil {
			t.Fatal(err)
		}
		d := open(t, body.JSON, v)
		for _, a := range in.Agents {
			if got, want := d.Nodes["/usr/local/bin/mcsnap-agent-"+a.Arch].Contents, "from "+a.URL+suffix; got != want {
				t.Errorf("%s: %s comes %q, want %q", v, a.Arch, got, want)
			}
			if !strings.Contains(string(body.JSON), `"hash":"sha512-`+a.SHA512+`"`) {
				t.Errorf("%s: the agent for %s is not pinned", v, a.Arch)
			}
			_, text, _, err := systemd.FirstbootFor(a.Arch)
			if err != nil || d.Units["mcsnap-firstboot-"+a.Arch+".service"] != "enabled: "+text {
				t.Errorf("%s: the unit for %s: %v", v, a.Arch, err)
			}
		}
	}
	for name, agents := range map[string][]compose.Agent{
		"a short hash":            {{Arch: "amd64", URL: "https://h/", SHA512: "ab"}},
		"an unknown architecture": {{Arch: "vax", URL: "https://h/", SHA512: other}, {Arch: "amd64", URL: "https://h/", SHA512: other}},
	} {
		in.Agents = agents
		if _, err := compose.Compose(in, specver.V3_5); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// What is added twice, or to a path that is no path, is an error of whoever configured it.
func TestBadFiles(t *testing.T) {
	for _, p := range []string{"relative", "/etc/../etc/x", "/etc/x/", "", compose.AnnotationsPath, snapshot.Path, compose.KubeconfigPath} {
		in := everything(load(t, "testdata/files.yaml").snapshot)
		in.Files = []compose.File{{Path: p, Contents: []byte("S3CR3T")}}
		if _, err := compose.Compose(in, specver.V3_5); err == nil || strings.Contains(err.Error(), "S3CR3T") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v", p, err)
		}
	}
}

// Configs inside the config are merged by Ignition's rules before anything else, so that they are converted like the rest
// and cannot win over what is added (field case 33).
func TestConfigsInside(t *testing.T) {
	inside := func(section string) string {
		return contents.Base64([]byte(`{"ignition":{"version":"3.4.0"},` + section + `}`))
	}
	outer := func(refs string) *snapshot.Snapshot {
		return seal(t, `{"ignition":{"version":"3.5.0","config":{`+refs+`}},"storage":{"files":[{"path":"/a","mode":420,"contents":{"source":"data:,outer"}}]}}`)
	}
	const elsewhere = `{"source":"https://config.example/"}`
	merge := func(section string) string { return `{"source":"` + inside(section) + `"}` }
	tests := []struct {
		name, refs, want string // want is the contents of /a, or an error
	}{
		{"the later wins", `"merge":[` + merge(`"storage":{"files":[{"path":"/a","contents":{"source":"data:,first"}}]}`) + `,` +
			merge(`"storage":{"files":[{"path":"/a","contents":{"source":"data:,second"}}]}`) + `]`, "second"},
		{"a replacement is all there is", `"replace":` + merge(`"storage":{"files":[{"path":"/a","mode":384,"contents":{"source":"data:,instead"}}]}`), "instead"},
		{"one elsewhere stays", `"merge":[` + merge(`"storage":{"files":[{"path":"/a","contents":{"source":"data:,inside"}}]}`) + `,` + elsewhere + `]`, "inside"},
		{"one inside after one elsewhere", `"merge":[` + elsewhere + `,` + merge(`"passwd":{}`) + `]`, "spec.config.ignition.config.merge.1: it stands here after a config elsewhere"},
		{"a replacement elsewhere", `"replace":` + elsewhere, "spec.config.ignition.config.replace: a config elsewhere would take the place of this one"},
		{"two valid ones make an invalid one", `"merge":[` + merge(`"storage":{"links":[{"path":"/b","target":"/c"}],"files":[]}`) + `,` +
			merge(`"storage":{"files":[{"path":"/b/x"}]}`) + `]`, "spec.config: merged with the configs inside it: Ignition says: storage.files.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, v := range []specver.Version{specver.V3_5, specver.V3_1} {
				body, err := compose.Compose(everything(outer(tt.refs)), v)
				if err != nil {
					var invalid *compose.InvalidConfigError
					if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tt.want) {
						t.Errorf("%s: got %v, want %q", v, err, tt.want)
					}
					continue
				}
				nodes := open(t, body.JSON, v).Nodes
				if nodes["/a"].Contents != tt.want || nodes[snapshot.Path].Kind != "file" {
					t.Errorf("%s: /a is %+v, want %q", v, nodes["/a"], tt.want)
				}
				if strings.Contains(tt.refs, elsewhere) != strings.Contains(string(body.JSON), "config.example") || strings.Contains(string(body.JSON), `"replace"`) {
					t.Errorf("%s: references: %.200s", v, body.JSON)
				}
			}
		})
	}
	// Ours win over a config inside, and its directory in our place is seen.
	body, err := compose.Compose(everything(outer(`"merge":[`+merge(`"storage":{"files":[{"path":"/etc/mcd-snapshot.json","contents":{"source":"data:,x"}}]}`)+`]`)), specver.V3_5)
	if err != nil || strings.Contains(string(body.JSON), `"data:,x"`) {
		t.Errorf("a config inside wins over the snapshot: %v", err)
	}
	_, err = compose.Compose(everything(outer(`"merge":[`+merge(`"storage":{"directories":[{"path":"/etc/mcd-snapshot.json"}]}`)+`]`)), specver.V3_5)
	var taken *snapshot.PathTakenError
	if !errors.As(err, &taken) {
		t.Errorf("a directory of a config inside: got %v", err)
	}
	deep := `{"ignition":{"version":"3.5.0"}}`
	for range 12 {
		deep = fmt.Sprintf(`{"ignition":{"version":"3.5.0","config":{"merge":[{"source":"%s"}]}}}`, contents.Base64([]byte(deep)))
	}
	if _, err := compose.Compose(everything(seal(t, deep)), specver.V3_0); err == nil || !strings.Contains(err.Error(), "more than 8 deep") {
		t.Errorf("got %v", err)
	}
}
