// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mcsnap/mcsnap/agent/daemon/apply"
	"github.com/mcsnap/mcsnap/agent/daemon/plan"
	"github.com/mcsnap/mcsnap/agent/daemon/wanted"
	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/durable"
)

// distribution is what the OS image has: text by path; a value that begins with "->" is a link.
var distribution = map[string]string{
	"etc/passwd":                           "root:x:0:0:root:/root:/bin/bash\ncore:x:1000:1000:core:/home/core:/bin/bash\ndaemon:x:2:2::/:/sbin/nologin\n",
	"etc/group":                            "root:x:0:\ncore:x:1000:\ndaemon:x:2:\n",
	"etc/shadow":                           "root:*:19000:0:99999:7:::\ncore:*:19000:0:99999:7:::\n",
	"etc/dist.conf":                        "the distribution's\n",
	"etc/dist.log":                         "first line\n",
	"etc/dist.link":                        "-> dist.conf",
	"etc/sysctl.d/10-dist.conf":            "a = 1\n",
	"usr/etc/image.conf":                   "the image's\n",
	"etc/image.conf":                       "the image's\n",
	"var/opt/x":                            "x\n",
	"opt":                                  "-> var/opt",
	"usr/lib/systemd/system/d.timer":       "[Timer]\nOnBootSec=1\n[Install]\nWantedBy=timers.target\n",
	"usr/lib/systemd/system/dist.service":  "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n",
	"usr/lib/systemd/system/off.service":   "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\nAlias=dbus-off.service\n",
	"usr/lib/systemd/system/echo@.service": "[Service]\nExecStart=/bin/echo %i\n[Install]\nWantedBy=multi-user.target\n",
	"usr/lib/systemd/system-preset/90-dist.preset": "enable dist.service\nenable d.timer\n",
	"usr/lib/systemd/system-preset/99-last.preset": "disable *\n",
}

var built struct {
	sync.Once
	dir string
}

// image makes a root as the OS image has it.
func image(t testing.TB) string {
	t.Helper()
	built.Do(func() { built.dir = build(t) })
	return copied(t, built.dir)
}

// TestMain removes the image, which all tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(built.dir)
	os.Exit(code)
}

func build(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mcsnap-image-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range distribution {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		target, link := strings.CutPrefix(text, "-> ")
		var err error
		if link {
			err = os.Symlink(target, at)
		} else {
			err = os.WriteFile(at, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	home := filepath.Join(dir, "home/core")
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, 1000, 1000); err != nil {
		t.Fatalf("%v: these tests give files to other accounts: run them as root", err)
	}
	presets(t, dir) // whoever builds an image does
	return dir
}

// sealed is the rendered config of an Ignition config.
func sealed(t testing.TB, name, ignition string) *snapshot.Snapshot {
	t.Helper()
	object, err := json.Marshal(map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"config": json.RawMessage(ignition)},
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

// node is a root with a store on it.
type node struct {
	t     testing.TB
	dir   string
	root  *root.Root
	store *apply.Store
	at    *snapshot.Snapshot
}

func open(t testing.TB, dir string, files durable.FS, at *snapshot.Snapshot) (*node, error) {
	t.Helper()
	opened, err := root.Open(dir, files)
	if err != nil {
		return nil, err
	}
	store, err := apply.Open(opened)
	if err != nil {
		return nil, err
	}
	return &node{t, dir, opened, store, at}, nil
}

func (n *node) close() {
	n.store.Close()
	_ = n.root.Close()
}

// adopt writes the record of a node that was born with a config.
func (n *node) adopt() {
	n.t.Helper()
	originals, blobs, err := plan.Adopt(read(n.t, n.at), plan.Facts{Root: n.root, Contents: n.store})
	for _, err := range []error{err, n.store.KeepBlobs(blobs), n.store.KeepSnapshot(n.at),
		n.store.SetRecord(apply.Record{Current: apply.RefOf(n.at), Originals: originals})} {
		if err != nil {
			n.t.Fatal(err)
		}
	}
}

// update applies another config.
func (n *node) update(to *snapshot.Snapshot) error {
	n.t.Helper()
	p, record, err := n.plan(to)
	if err != nil {
		return err
	}
	next := apply.Record{Current: apply.RefOf(to), Previous: &record.Current, Originals: p.Originals, Folders: p.Folders}
	if err := n.store.Apply(context.Background(), p, record.Current, to, next); err != nil {
		return err
	}
	n.at = to
	return nil
}

func (n *node) plan(to *snapshot.Snapshot) (*plan.Plan, *apply.Record, error) {
	record, err := n.store.Record()
	if err != nil {
		return nil, nil, err
	}
	at, err := n.store.Snapshot(record.Current)
	if err != nil {
		return nil, nil, err
	}
	p, err := plan.Make(read(n.t, at), read(n.t, to), n.facts(record))
	return p, record, err
}

func (n *node) facts(record *apply.Record) plan.Facts {
	return plan.Facts{Root: n.root, Originals: record.Originals, Folders: record.Folders, Contents: n.store}
}

// drifted lists what is not as the node's config has it.
func (n *node) drifted() []plan.Drift {
	n.t.Helper()
	record, err := n.store.Record()
	if err != nil {
		n.t.Fatal(err)
	}
	found, err := plan.Drifted(read(n.t, n.at), n.facts(record))
	if err != nil {
		n.t.Fatal(err)
	}
	return found
}

// copied is a copy of a root.
func copied(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "root")
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
	return to
}

// presets has systemd act on the presets, as it does on a first boot.
func presets(t testing.TB, dir string) {
	t.Helper()
	if out, err := exec.Command("systemctl", "--root="+dir, "preset-all").CombinedOutput(); err != nil {
		t.Fatalf("systemctl preset-all: %v: %s\nif it is not installed: e2e/lab/packages systemd", err, out)
	}
}

// tree is all that is on a root: a line for each path, with type, mode, owner and contents or target.
func tree(t testing.TB, dir string, but ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(at, dir)
		for _, skipped := range but {
			if name == skipped {
				if entry.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		line := fmt.Sprintf("%v %d:%d", info.Mode(), stat.Uid, stat.Gid)
		switch {
		case info.Mode().IsRegular():
			text, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %q", text)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(at)
			if err != nil {
				return err
			}
			line = "-> " + target
		}
		found[name] = line
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
