// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/agent/command"
	"github.com/mcsnap/mcsnap/agent/daemon/change"
	"github.com/mcsnap/mcsnap/e2e/lab"
	"github.com/mcsnap/mcsnap/snapshot"
)

// execute runs one command line in this process.
func execute(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, said bytes.Buffer
	program := topmost()
	program.SetIn(strings.NewReader(stdin))
	program.SetOut(&out)
	program.SetErr(&said)
	code = command.Run(t.Context(), program, args)
	return out.String(), said.String(), code
}

// rendered is a MachineConfig with a secret in a file, and a unit.
func rendered(name, mode string) string {
	return fmt.Sprintf(`{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","metadata":{"name":"%s"},"spec":{"config":{
		"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/canary","mode":%s,"contents":{"source":"data:,sesame-%s"}}]},
		"systemd":{"units":[{"name":"a.service","enabled":true,"contents":"[Unit]\nDescription=%s\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"}]}}}}`,
		name, mode, name, name)
}

// born is a node's root that the real Ignition wrote, with the snapshot that it was served.
func born(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	preset := filepath.Join(dir, "usr/lib/systemd/system-preset")
	s, err := snapshot.Seal([]byte(rendered("rendered-worker-1", "384")), "worker")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(preset, 0o755), os.WriteFile(filepath.Join(preset, "99-default.preset"), []byte("disable *\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	lab.ApplyIgnition(t, s.IgnitionConfig(), dir)
	// What the first boot's systemd does with Ignition's presets.
	if out, err := exec.Command("systemctl", "--root="+dir, "preset-all").CombinedOutput(); err != nil {
		t.Fatalf("systemctl preset-all: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, snapshot.Path), s.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// everything is what lies below a root: names, modes and contents.
func everything(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&all, path, info.Mode())
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// plan tells what an update would do, and status how far a node is; neither writes, and neither prints what is in a file.
func TestPlanAndStatus(t *testing.T) {
	dir := born(t)
	before := everything(t, dir)
	file := filepath.Join(t.TempDir(), "next.json")
	if err := os.WriteFile(file, []byte(rendered("rendered-worker-2", "420")), 0o600); err != nil {
		t.Fatal(err)
	}
	disk := strings.Replace(rendered("rendered-worker-3", "384"), `"storage":{`, `"storage":{"disks":[{"device":"/dev/vdb","wipeTable":true}],`, 1)
	for name, c := range map[string]struct {
		stdin string
		args  []string
		want  []string
	}{
		"what it has":       {rendered("rendered-worker-1", "384"), []string{"plan", "-"}, []string{"nothing is changed"}},
		"a file and a unit": {"", []string{"plan", file}, []string{"rendered-worker-1", "rendered-worker-2", "/etc/canary", "a.service", "then a reboot"}},
		"a disk":            {disk, []string{"plan", "-"}, []string{"cannot", "Unreconcilable"}},
		"how far":           {"", []string{"status", "--offline"}, []string{"rendered-worker-1 of pool worker", "drift        none"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, said, code := execute(t, c.stdin, append([]string{"--root", dir}, c.args...)...)
			if code != 0 || said != "" {
				t.Fatalf("exit code %d: %s", code, said)
			}
			for _, words := range c.want {
				if !strings.Contains(out, words) {
					t.Errorf("%q is not in\n%s", words, out)
				}
			}
			if strings.Contains(out, "sesame") {
				t.Errorf("a file's content is printed:\n%s", out)
			}
		})
	}
	if after := everything(t, dir); after != before {
		t.Errorf("plan or status wrote to the node:\n%s\nwas\n%s", after, before)
	}
}

// What machines read has the same facts.
func TestJSON(t *testing.T) {
	dir := born(t)
	out, said, code := execute(t, rendered("rendered-worker-2", "420"), "--root", dir, "plan", "-", "-o", "json")
	var plan change.Plan
	if err := json.Unmarshal([]byte(out), &plan); err != nil || code != 0 {
		t.Fatalf("%d %v %s\n%s", code, err, said, out)
	}
	if !plan.Reboot || plan.From != "rendered-worker-1" || plan.To != "rendered-worker-2" || !strings.Contains(out, `"/etc/canary"`) {
		t.Errorf("%s", out)
	}
	if err := os.WriteFile(filepath.Join(dir, "etc/canary"), []byte("by hand"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, said, code = execute(t, "", "--root", dir, "status", "--offline", "-o", "json")
	var is status
	if err := json.Unmarshal([]byte(out), &is); err != nil || code != 0 {
		t.Fatalf("%d %v %s\n%s", code, err, said, out)
	}
	if is.Current == nil || is.Current.Name != "rendered-worker-1" || !slices.ContainsFunc(is.Drift, func(d string) bool { return strings.Contains(d, "/etc/canary") }) {
		t.Errorf("%s", out)
	}
}

// Whatever is wrong with what was given has its exit code and one line.
func TestFailures(t *testing.T) {
	dir := born(t)
	for name, c := range map[string]struct {
		stdin string
		args  []string
		code  int
		want  string
	}{
		"no such command":  {"", []string{"plans"}, command.Usage, "unknown command"},
		"no such format":   {"", []string{"status", "-o", "yaml"}, command.Usage, "use text or json"},
		"two configs":      {"", []string{"plan", "--config", "a", "b"}, command.Usage, "give one of them"},
		"no such file":     {"", []string{"plan", filepath.Join(dir, "none")}, command.Machine, "none"},
		"no YAML":          {"a: [", []string{"plan", "-"}, command.Input, "neither JSON nor YAML"},
		"not rendered":     {"kind: Pod", []string{"plan", "-"}, command.Input, "-: "},
		"no kubeconfig":    {"", []string{"plan", "--kubeconfig", filepath.Join(dir, "none")}, command.Network, "has the kubelet joined?"},
		"no such node":     {"", []string{"--root", filepath.Join(dir, "none"), "status"}, command.Machine, "none"},
		"asked and absent": {"", []string{"status", "--kubeconfig", filepath.Join(dir, "none")}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := c.args
			if args[0] != "--root" {
				args = append([]string{"--root", dir}, args...)
			}
			out, said, code := execute(t, c.stdin, args...)
			if code != c.code || !strings.Contains(said, c.want) || strings.Count(said, "\n") > 1 {
				t.Errorf("exit code %d, %q; want %d, %q\n%s", code, said, c.code, c.want, out)
			}
		})
	}
}
