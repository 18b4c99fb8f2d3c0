// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/agent/doctor"
	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
)

// rendered is a config of pool master in which file c has content.
func rendered(suffix, content string) string {
	return fmt.Sprintf(`{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","metadata":{"name":"rendered-master-%s"},
		"spec":{"config":{"ignition":{"version":"3.4.0"},"passwd":{"users":[{"name":"core","passwordHash":"S3CR3T"}]},"storage":{"files":[
			{"path":"/etc/a","mode":384,"contents":{"source":"data:,S3CR3T"}},
			{"path":"/etc/b","mode":420,"contents":{"source":"data:,%s"}},
			{"path":"/etc/c","mode":420,"contents":{"source":"data:,%[2]s"}}]}},"kernelArguments":[]}}`, suffix, content)
}

func dumpOf(objects ...string) string {
	return `{"apiVersion":"v1","kind":"List","items":[` + strings.Join(objects, ",") + `]}`
}

const pool = `{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfigPool","metadata":{"name":"master"},"spec":{"configuration":{"name":"rendered-master-new"}}}`

func sealed(t *testing.T, config string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Seal([]byte(config), "master")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// node is a node's root as Ignition left it, with some files changed; an empty content leaves one out.
func node(t *testing.T, s *snapshot.Snapshot, changes map[string]string) *root.Root {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		snapshot.Path: string(s.Bytes()),
		handoff.AnnotationsPath: fmt.Sprintf(`{"machineconfiguration.openshift.io/currentConfig":%q,"mcsnap/birth-snapshot":%q}`,
			s.Name(), s.Digest()),
		handoff.ConfigPath: "apiVersion: mcsnap/v1\nservers: [https://mcs.example.com]\n",
		"/etc/a":           "S3CR3T", "/etc/b": "old", "/etc/c": "old",
	}
	for name, content := range changes {
		files[name] = content
	}
	for name, content := range files {
		if content == "" {
			continue
		}
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := root.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return opened
}

func TestExamine(t *testing.T) {
	s := sealed(t, rendered("old", "old"))
	has := func(context.Context, *handoff.Config, string, snapshot.Digest) error { return nil }
	gone := func(context.Context, *handoff.Config, string, snapshot.Digest) error {
		return errors.New("https://mcs.example.com: 503 Service Unavailable")
	}
	exported, err := s.Export("")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		files   map[string]string
		ask     doctor.Ask
		dump    string
		sources []string // those that can supply the config
		says    []string // somewhere in the report
		action  string
	}{
		// Field case 11: every node names a config that is gone, and the cluster has another one.
		"the object is gone": {
			dump: dumpOf(pool, rendered("new", "new")), ask: gone, sources: []string{"snapshot"},
			says: []string{"present, verified", "content differs from cluster target rendered-master-new in 2 files: /etc/b, /etc/c",
				"has no MachineConfig rendered-master-old; pool master is to have rendered-master-new"},
			action: "systemctl restart mcsnap-firstboot.service"},
		"the cluster still has it": {
			dump: dumpOf(rendered("old", "old")), sources: []string{"snapshot", "cluster"}, action: "hand over"},
		"handed over": {
			files: map[string]string{handoff.CurrentPath: string(exported)}, sources: []string{"disk", "snapshot"}, action: "none: the config is handed over"},
		"the cluster has another spec of this name": {
			dump: dumpOf(rendered("old", "changed")), sources: []string{"snapshot"}, says: []string{"another spec than the snapshot"}, action: "hand over"},
		"snapshot lost, server has it": {
			files: map[string]string{snapshot.Path: ""}, ask: has, sources: []string{"server"}, action: "fetch the snapshot by digest"},
		"snapshot lost, only the cluster has it": {
			files: map[string]string{snapshot.Path: ""}, ask: gone, dump: dumpOf(rendered("old", "old")), sources: []string{"cluster"},
			says: []string{"503"}, action: "capture"},
		"snapshot lost, nobody could be asked": {
			files: map[string]string{snapshot.Path: ""}, action: "ask again before giving this node up: nothing is known of the server"},
		"snapshot lost, the server does not answer": {
			files: map[string]string{snapshot.Path: ""}, ask: gone, dump: dumpOf(pool), action: "nothing is known of the server (https://mcs.example.com: 503"},
		"snapshot lost, agent.yaml too": {
			files: map[string]string{snapshot.Path: "", handoff.ConfigPath: ""}, dump: dumpOf(pool), says: []string{"agent.yaml is missing"},
			action: "ask again"},
		"all lost": {
			files: map[string]string{snapshot.Path: "", handoff.AnnotationsPath: ""}, dump: dumpOf(pool), action: "provision this node again"},
		"joined": {
			files: map[string]string{handoff.KubeletCertPath: "x"}, sources: []string{"snapshot"}, action: "none on this node"},
		"mixed": {
			files:  map[string]string{handoff.AnnotationsPath: `{"machineconfiguration.openshift.io/currentConfig":"rendered-master-x"}`},
			says:   []string{"mixed provisioning", "the node needs another"},
			action: "provision this node again"},
		"files differ": {
			files: map[string]string{"/etc/a": "other", "/etc/b": ""}, sources: []string{"snapshot"},
			says: []string{"on disk: /etc/a has other content (5 bytes, rendered were 6)", "on disk: /etc/b is missing"}, action: "hand over"},
	} {
		t.Run(name, func(t *testing.T) {
			var dump *doctor.Dump
			if test.dump != "" {
				var err error
				if dump, err = doctor.ParseDump([]byte(test.dump)); err != nil {
					t.Fatal(err)
				}
			}
			report := doctor.Examine(t.Context(), node(t, s, test.files), test.ask, dump)
			var able []string
			for _, source := range report.Sources {
				if source.Has {
					able = append(able, source.Name)
				}
			}
			if !slices.Equal(able, test.sources) {
				t.Errorf("%v can supply it, want %v:\n%+v", able, test.sources, report)
			}
			if !strings.Contains(report.Action, test.action) {
				t.Errorf("action is %q, want %q", report.Action, test.action)
			}
			whole := fmt.Sprintf("%+v", report)
			for _, text := range test.says {
				if !strings.Contains(whole, text) {
					t.Errorf("nothing says %q:\n%s", text, whole)
				}
			}
			if strings.Contains(whole, "S3CR3T") {
				t.Errorf("the report shows a secret:\n%s", whole)
			}
		})
	}
}

func TestOverlaysAreNoDifference(t *testing.T) {
	s := sealed(t, rendered("old", "old")).WithOverlays([]snapshot.Overlay{{Path: "/etc/b", Reason: "controllerconfig", SHA256: strings.Repeat("0", 64)}})
	report := doctor.Examine(t.Context(), node(t, s, map[string]string{"/etc/b": "rotated"}), nil, nil)
	if len(report.Differences) > 0 {
		t.Errorf("an overlay is told as a difference (field case 24): %v", report.Differences)
	}
}

func TestParseDumpRefuses(t *testing.T) {
	for _, text := range []string{"", "null", "[]", "{", "kind: ConfigMap\nmetadata: {name: x}", strings.Repeat("[", 10_000)} {
		if dump, err := doctor.ParseDump([]byte(text)); err == nil {
			t.Errorf("%.40q: taken as %+v", text, dump)
		}
	}
}

func FuzzParseDump(f *testing.F) {
	f.Add(dumpOf(pool, rendered("new", "new")))
	f.Add("kind: MachineConfig\nmetadata: {name: x}\nspec: {config: 5}")
	f.Fuzz(func(t *testing.T, text string) {
		dump, err := doctor.ParseDump([]byte(text))
		if (dump == nil) == (err == nil) {
			t.Errorf("%v, %v", dump, err)
		}
	})
}
