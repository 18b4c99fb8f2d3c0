// SPDX-License-Identifier: Apache-2.0

package handoff_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/durable"
)

// sealed is a snapshot of n files whose name ends in suffix.
func sealed(t testing.TB, suffix string, n int) *snapshot.Snapshot {
	t.Helper()
	var files []string
	for i := range n {
		files = append(files, fmt.Sprintf(`{"path":"/etc/example/%03d.conf","mode":420,"contents":{"source":"data:,value%%20%d"}}`, i, i))
	}
	rendered := fmt.Sprintf(`{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","metadata":{"name":"rendered-worker-%s"},
		"spec":{"config":{"ignition":{"version":"3.4.0"},"storage":{"files":[%s]}},"kernelArguments":["quiet"],"osImageURL":"example.com/os@sha256:1"}}`,
		suffix, strings.Join(files, ","))
	s, err := snapshot.Seal([]byte(rendered), "worker")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// emptied is what upstream's first boot stores as current: the name, and nothing in the Ignition part.
func emptied(t testing.TB, s *snapshot.Snapshot) []byte {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(s.MachineConfig(), &object); err != nil {
		t.Fatal(err)
	}
	object["spec"].(map[string]any)["config"] = map[string]any{"ignition": map[string]any{"version": "3.4.0"}}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func annotations(s *snapshot.Snapshot) string {
	return fmt.Sprintf(`{"machineconfiguration.openshift.io/currentConfig":%q,"machineconfiguration.openshift.io/desiredConfig":%[1]q,
		"machineconfiguration.openshift.io/firstPivotConfig":%[1]q,"machineconfiguration.openshift.io/state":"Done","mcsnap/birth-snapshot":%q}`, s.Name(), s.Digest())
}

const agentYAML = "apiVersion: mcsnap/v1\nservers:\n- https://mcs.example.com:22623\n"

// born is a node's root as Ignition leaves it, with other files put in or, where empty, left out.
func born(t testing.TB, s *snapshot.Snapshot, changes map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	bornAt(t, dir, s, changes)
	return dir
}

func bornAt(t testing.TB, dir string, s *snapshot.Snapshot, changes map[string]string) {
	t.Helper()
	files := map[string]string{
		snapshot.Path:           string(s.Bytes()),
		handoff.AnnotationsPath: annotations(s),
		handoff.ConfigPath:      agentYAML,
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
}

// server answers by digest from what it has, after a number of attempts.
func server(attempts int, has ...*snapshot.Snapshot) handoff.Fetch {
	return func(_ context.Context, _ *handoff.Config, _ string, digest snapshot.Digest) (*snapshot.Snapshot, int, error) {
		for _, s := range has {
			if s.Digest() == digest {
				return s, attempts, nil
			}
		}
		return nil, attempts, errors.New("https://mcs.example.com:22623: 503 Service Unavailable")
	}
}

func open(t testing.TB, dir string, files durable.FS) *root.Root {
	t.Helper()
	node, err := root.Open(dir, files)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	return node
}

func options(node *root.Root, fetch handoff.Fetch) handoff.Options {
	return handoff.Options{Node: node, Fetch: fetch, BootID: "boot-1", Version: "v1.2.3"}
}

// tree is every file below a folder with its mode and content; folders with their mode.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content := ""
		if entry.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(text)
		}
		relative, err := filepath.Rel(dir, path)
		files[relative] = info.Mode().String() + " " + content
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
