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

// Field case 96: other services key on upstream's files, so ours have new names and nothing else refers to them.
func TestOrdering(t *testing.T) {
	contents := systemd.Firstboot()
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

// Field case 89: a boot image without our programs must not fail.
func TestMissingProgramsAreNoFailure(t *testing.T) {
	for name, unit := range units(t) {
		if got := values(unit.text, "ConditionFileIsExecutable"); got != unit.program {
			t.Errorf("%s: ConditionFileIsExecutable is %q, want %q", name, got, unit.program)
		}
	}
}

// systemd-analyze ends with 0 on a misspelt key and only says so: silence is what passes.
func TestVerify(t *testing.T) {
	for name := range units(t) {
		out, err := exec.Command("systemd-analyze", "verify", "--root="+image(t, name), name).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("systemd-analyze verify %s: %v\n%s%s", name, err, out, hint(err))
		}
	}
}

// maxExposure is in tenths of systemd's scale, on which 10.0 is the worst and up to 4.9 is called OK.
const maxExposure = "25"

func TestExposure(t *testing.T) {
	for name := range units(t) {
		unit := filepath.Join(image(t, name), "etc/systemd/system", name)
		out, err := exec.Command("systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold="+maxExposure, unit).CombinedOutput()
		if err != nil {
			t.Errorf("%s is more exposed than %s tenths: %v\n%s%s", name, maxExposure, err, out, hint(err))
		}
		_, verdict, _ := strings.Cut(string(out), "Overall exposure level for ")
		t.Logf("bench: exposure %s", strings.TrimSpace(verdict))
	}
}

// The preset and tmpfiles files do on a root what they say, judged by systemd's own tools.
func TestPresetAndTmpfiles(t *testing.T) {
	root := image(t, systemd.FirstbootName)
	write(t, filepath.Join(root, "etc/systemd/system", systemd.DaemonName), systemd.Daemon(), 0o644)
	write(t, filepath.Join(root, "usr/lib/systemd/system-preset", systemd.PresetName), systemd.Preset(), 0o644)
	write(t, filepath.Join(root, "usr/lib/tmpfiles.d", systemd.TmpfilesName), systemd.Tmpfiles(), 0o644)
	write(t, filepath.Join(root, "etc/mcd-snapshot.json"), "{}", 0o644)

	for _, args := range [][]string{
		{"systemctl", "--root=" + root, "preset", systemd.FirstbootName, systemd.DaemonName},
		{"systemd-tmpfiles", "--root=" + root, "--create", systemd.TmpfilesName},
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

type unit struct{ text, program string }

// units are all that a node may get, by name.
func units(t *testing.T) map[string]unit {
	t.Helper()
	name, text, agent, err := systemd.FirstbootFor("arm64")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]unit{
		systemd.FirstbootName: {systemd.Firstboot(), systemd.AgentPath},
		systemd.DaemonName:    {systemd.Daemon(), systemd.DaemonPath},
		name:                  {text, agent},
	}
}

// image is a root with one of our units, the program it runs, and this machine's own systemd units.
func image(t *testing.T, name string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "usr/lib/systemd"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", "/usr/lib/systemd/system", filepath.Join(root, "usr/lib/systemd/system")).CombinedOutput(); err != nil {
		t.Fatalf("systemd's own units: %v: %s%s", err, out, hint(err))
	}
	unit := units(t)[name]
	write(t, filepath.Join(root, "etc/systemd/system", name), unit.text, 0o644)
	write(t, filepath.Join(root, unit.program), "#!/bin/sh\n", 0o755)
	return root
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

// values is all that a key of a unit file is set to, a line each.
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
