// SPDX-License-Identifier: Apache-2.0

package systemd_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/systemd"
)

func TestFirstboot(t *testing.T) {
	for _, test := range []struct {
		arch        string
		multi       bool
		name, agent string
		condition   string
	}{
		{"amd64", false, "mcsnap-firstboot.service", "/usr/local/bin/mcsnap-agent", ""},
		{"arm64", false, "mcsnap-firstboot.service", "/usr/local/bin/mcsnap-agent", ""},
		{"amd64", true, "mcsnap-firstboot-amd64.service", "/usr/local/bin/mcsnap-agent-amd64", "x86-64"},
		{"arm64", true, "mcsnap-firstboot-arm64.service", "/usr/local/bin/mcsnap-agent-arm64", "arm64"},
		{"ppc64le", true, "mcsnap-firstboot-ppc64le.service", "/usr/local/bin/mcsnap-agent-ppc64le", "ppc64-le"},
		{"s390x", true, "mcsnap-firstboot-s390x.service", "/usr/local/bin/mcsnap-agent-s390x", "s390x"},
	} {
		unit := firstboot(t, test.arch, test.multi)
		if unit.Name != test.name || unit.Agent != test.agent {
			t.Errorf("%s, several %v: got %s running %s, want %s running %s", test.arch, test.multi, unit.Name, unit.Agent, test.name, test.agent)
		}
		if got := value(unit.Contents, "ConditionArchitecture"); got != test.condition {
			t.Errorf("%s: ConditionArchitecture is %q, want %q", unit.Name, got, test.condition)
		}
		if got := value(unit.Contents, "ExecStart"); got != test.agent+" firstboot" {
			t.Errorf("%s: ExecStart is %q", unit.Name, got)
		}
		if got := value(unit.Contents, "ConditionFileIsExecutable"); got != test.agent {
			t.Errorf("%s: a boot image without the agent must not fail (field case 89): ConditionFileIsExecutable is %q", unit.Name, got)
		}
	}
	if _, err := systemd.Firstboot("pdp11", true); err == nil || !strings.Contains(err.Error(), "pdp11") {
		t.Errorf("an unknown architecture: got %v, want an error that names it", err)
	}
}

// Field case 96: other services key on upstream's files, so ours have new names and nothing else refers to them.
func TestOrdering(t *testing.T) {
	contents := firstboot(t, "amd64", false).Contents
	for key, units := range map[string][]string{
		"After":  {"machine-config-daemon-firstboot.service", "systemd-machine-id-commit.service"},
		"Before": {"kubelet-dependencies.target", "kubelet.service"},
	} {
		for _, unit := range units {
			if !strings.Contains(values(contents, key), unit) {
				t.Errorf("%s= has no %s", key, unit)
			}
		}
	}
	for _, key := range []string{"Requires", "BindsTo", "RequiredBy"} {
		if got := values(contents, key); got != "" {
			t.Errorf("%s=%s: a failed hand-over must not keep the kubelet from starting", key, got)
		}
	}
	if strings.Contains(contents, "network-online") {
		t.Error("the unit waits for the network, which a snapshot that verifies does not need")
	}
}

// systemd-analyze ends with 0 on a misspelt key and only says so: silence is what passes.
func TestVerify(t *testing.T) {
	for name, run := range units(t) {
		root := image(t, name, run)
		out, err := exec.Command("systemd-analyze", "verify", "--root="+root, name).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("systemd-analyze verify %s: %v\n%s%s", name, err, out, hint(err))
		}
	}
}

const maxExposure = 25 // tenths; systemd calls up to 4.0 OK

func TestExposure(t *testing.T) {
	for name, run := range units(t) {
		root := image(t, name, run)
		unit := filepath.Join(root, "etc/systemd/system", name)
		out, err := exec.Command("systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=100", unit).Output()
		if err != nil {
			t.Fatalf("systemd-analyze security %s: %v%s", name, err, hint(err))
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Logf("bench: %s", lines[len(lines)-1])
		if out, err := exec.Command("systemd-analyze", "security", "--offline=yes", "--no-pager",
			"--threshold=25", unit).CombinedOutput(); err != nil {
			t.Errorf("%s is more exposed than %d tenths:\n%s", name, maxExposure, out)
		}
	}
}

// The preset and tmpfiles files do on a root what they say, judged by systemd's own tools.
func TestPresetAndTmpfiles(t *testing.T) {
	root := image(t, "mcsnap-firstboot.service", "/usr/local/bin/mcsnap-agent")
	copyTree(t, filepath.Join(root, "usr/lib/systemd"), "system-preset")
	copyTree(t, filepath.Join(root, "usr/lib"), "tmpfiles.d")
	daemon, err := fs.ReadFile(systemd.Files(), "system/mcsnap-daemon.service")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "etc/systemd/system/mcsnap-daemon.service"), string(daemon), 0o644)
	write(t, filepath.Join(root, "etc/mcd-snapshot.json"), "{}", 0o644)

	for _, args := range [][]string{
		{"systemctl", "--root=" + root, "preset", "mcsnap-firstboot.service", "mcsnap-daemon.service"},
		{"systemd-tmpfiles", "--root=" + root, "--create", "mcsnap.conf"},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, hint(err))
		}
	}
	for path, exists := range map[string]bool{
		"etc/systemd/system/multi-user.target.wants/mcsnap-firstboot.service":           true,
		"etc/systemd/system/kubelet-dependencies.target.wants/mcsnap-firstboot.service": true,
		"etc/systemd/system/multi-user.target.wants/mcsnap-daemon.service":              false,
	} {
		if _, err := os.Lstat(filepath.Join(root, path)); (err == nil) != exists {
			t.Errorf("%s: got %v, want it to exist: %v", path, err, exists)
		}
	}
	for path, mode := range map[string]fs.FileMode{
		"etc/mcd-snapshot.json": 0o600,
		"var/lib/mcsnap":        0o700 | fs.ModeDir,
		"etc/mcsnap":            0o755 | fs.ModeDir,
	} {
		if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.Mode() != mode {
			t.Errorf("%s: got %v, %v, want mode %v", path, info, err, mode)
		}
	}
}

// units are all that a node may get, by name, with the program each runs.
func units(t *testing.T) map[string]string {
	several := firstboot(t, "arm64", true)
	return map[string]string{
		"mcsnap-firstboot.service": "/usr/local/bin/mcsnap-agent",
		"mcsnap-daemon.service":    "/usr/local/bin/mcsnap-daemon",
		several.Name:               several.Agent,
	}
}

// image is a root with one of our units, the program it runs, and this machine's own systemd units.
func image(t *testing.T, name, program string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "usr/lib/systemd"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", "/usr/lib/systemd/system", filepath.Join(root, "usr/lib/systemd/system")).CombinedOutput(); err != nil {
		t.Fatalf("systemd's own units: %v: %s; run e2e/lab/packages systemd", err, out)
	}
	contents := ""
	if unit := firstboot(t, "arm64", true); unit.Name == name {
		contents = unit.Contents
	} else {
		file, err := fs.ReadFile(systemd.Files(), "system/"+name)
		if err != nil {
			t.Fatal(err)
		}
		contents = string(file)
	}
	write(t, filepath.Join(root, "etc/systemd/system", name), contents, 0o644)
	write(t, filepath.Join(root, program), "#!/bin/sh\n", 0o755)
	return root
}

func firstboot(t *testing.T, arch string, multi bool) systemd.Unit {
	t.Helper()
	unit, err := systemd.Firstboot(arch, multi)
	if err != nil {
		t.Fatal(err)
	}
	return unit
}

func copyTree(t *testing.T, into, dir string) {
	t.Helper()
	entries, err := fs.ReadDir(systemd.Files(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		contents, err := fs.ReadFile(systemd.Files(), dir+"/"+entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(into, dir, entry.Name()), string(contents), 0o644)
	}
}

func write(t *testing.T, path, contents string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(contents), mode); err != nil {
		t.Fatal(err)
	}
}

// value is what a key of a unit file is set to first, values is all it is set to.
func value(contents, key string) string {
	first, _, _ := strings.Cut(values(contents, key), "\n")
	return first
}

func values(contents, key string) string {
	var all []string
	for line := range strings.Lines(contents) {
		if set, found := strings.CutPrefix(strings.TrimSpace(line), key+"="); found {
			all = append(all, set)
		}
	}
	return strings.Join(all, "\n")
}

func hint(err error) string {
	if err == nil {
		return ""
	}
	return "\nif it is not installed: e2e/lab/packages systemd"
}
