// SPDX-License-Identifier: Apache-2.0

package change

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/agent/daemon/units"
	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/e2e/lab"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/durable"
)

// TestMain keeps the nodes' roots in memory: each update syncs hundreds of times, and what a disk does with that is
// simulated where it matters.
func TestMain(m *testing.M) {
	if os.Getenv("MCSNAP_KILL_AT") != "" { // a process that ends by a signal clears nothing away
		os.Exit(m.Run())
	}
	memory, err := os.MkdirTemp("/dev/shm", "mcsnap-change-")
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(os.Chmod(memory, 0o755), os.Setenv("TMPDIR", memory)); err != nil {
		log.Fatal(err)
	}
	code := m.Run()
	_ = os.RemoveAll(memory)
	os.Exit(code)
}

// config is a rendered config in short: lists of files, units and keys as Ignition has them, and other fields of the spec.
type config struct {
	files, units, keys []string // JSON
	spec               string   // more members of spec, each with a comma before it
	sections           string   // more members of spec.config
}

func (c config) seal(t testing.TB, name string) *snapshot.Snapshot {
	t.Helper()
	doc := fmt.Sprintf(`{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","metadata":{"name":"rendered-worker-%s"},
		"spec":{"config":{"ignition":{"version":"3.4.0"},"storage":{"files":[%s]},"systemd":{"units":[%s]},
		"passwd":{"users":[{"name":"core","sshAuthorizedKeys":[%s]}]}%s}%s}}`,
		name, strings.Join(c.files, ","), strings.Join(c.units, ","), strings.Join(c.keys, ","), c.sections, c.spec)
	s, err := snapshot.Seal([]byte(doc), "worker")
	if err != nil {
		t.Fatalf("%v\n%s", err, doc)
	}
	return s
}

// image is a root as an OS image brings it: accounts, a few files and units, and a preset that enables nothing by itself.
func image(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/bash\ncore:x:1000:1000:core:/home/core:/bin/bash\nchrony:x:994:993::/var/lib/chrony:/sbin/nologin\n",
		"etc/group":  "root:x:0:\ncore:x:1000:\nchrony:x:993:\nwheel:x:10:core\n",
		"etc/shadow": "root:*:19000:0:99999:7:::\ncore:*:19000:0:99999:7:::\nchrony:*:19000:0:99999:7:::\n",
		"usr/lib/systemd/system-preset/99-default.preset": "disable *\n",
		"usr/lib/systemd/system/multi-user.target":        "[Unit]\nDescription=x\n",
		"usr/lib/systemd/system/default.target":           "[Unit]\nDescription=x\n",
	}
	for _, name := range []string{"motd", "motd1", "motd2", "chrony1.conf", "chrony2.conf", "chrony3.conf"} {
		files["etc/"+name], files["usr/etc/"+name] = "the image's own\n", "the image's own\n"
	}
	for i := range 5 {
		name := fmt.Sprintf("image%d", i+1)
		files["usr/lib/systemd/system/"+name+".service"] = service(name)
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "home"), 0o755), os.Mkdir(filepath.Join(dir, "home/core"), 0o700), os.Chown(filepath.Join(dir, "home/core"), 1000, 1000),
		os.MkdirAll(filepath.Join(dir, "etc/systemd/system"), 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func service(name string) string {
	return "[Unit]\nDescription=" + name + "\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
}

// firstBoot is the real Ignition on an image, and systemd's own presets after it.
func firstBoot(t testing.TB, dir string, s *snapshot.Snapshot) {
	t.Helper()
	lab.ApplyIgnition(t, s.IgnitionConfig(), dir)
	if out, err := exec.Command("systemctl", "--root="+dir, "preset-all").CombinedOutput(); err != nil {
		t.Fatalf("systemctl preset-all: %v\n%s", err, out)
	}
}

// node is an updater on a root that was born with a config.
func node(t testing.TB, dir string, s *snapshot.Snapshot, files durable.FS) *Updater {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, snapshot.Path), s.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return updater(t, dir, files)
}

func updater(t testing.TB, dir string, files durable.FS) *Updater {
	t.Helper()
	opened, err := root.Open(dir, files)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return &Updater{Node: opened, Units: units.Offline{Root: dir}, BootID: "boot-1", Log: slog.New(slog.DiscardHandler)}
}

// tree is all below a root but the daemon's own files and the snapshot, with mode, owner and content. Preset lines that
// disable are left out: Ignition writes one only where the image enables a unit, an update also where a config did.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, dir)
		switch name {
		case "/var", "/var/lib", Dir, "/etc/machine-config-daemon":
			if name == Dir || name == "/etc/machine-config-daemon" {
				return fs.SkipDir
			}
			return nil
		case snapshot.Path, "/etc/.ignition-result.json":
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case entry.Type().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(text)
			if name == PresetPath {
				content = enables(content)
			}
		case entry.Type()&fs.ModeSymlink != 0:
			if content, err = os.Readlink(path); err != nil {
				return err
			}
		}
		uid, gid := owner(info)
		all[name] = fmt.Sprintf("%v %d:%d %s", info.Mode(), uid, gid, content)
		if name == PresetPath && content == "" {
			delete(all, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func enables(preset string) string {
	var kept strings.Builder
	for line := range strings.Lines(preset) {
		if strings.HasPrefix(line, "enable ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func fileJSON(path, content string, more ...string) string {
	return fmt.Sprintf(`{"path":%q,"overwrite":true,"mode":420,"contents":{"source":"data:,%s"}%s}`, path, content, strings.Join(more, ""))
}

func unitJSON(name, content string, more ...string) string {
	quoted, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"name":%q,"contents":%s%s}`, name, quoted, strings.Join(more, ""))
}
