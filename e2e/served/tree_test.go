// SPDX-License-Identifier: Apache-2.0

package served_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// tree is what stands under a root: path to a line with type, mode, owner, and contents or target.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		var rest string
		switch {
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rest = fmt.Sprintf(" names=%d %q", stat.Nlink, text)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			rest = " to " + target
		}
		found[strings.TrimPrefix(path, root)] = fmt.Sprintf("%v %d:%d%s", info.Mode(), stat.Uid, stat.Gid, rest)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(found, "/etc/.ignition-result.json") // Ignition's own, with a time in it
	if _, ok := found[preset]; ok {             // 2.x keeps the config's order, 3.x sorts
		text, err := os.ReadFile(filepath.Join(root, preset))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(text), "\n")
		slices.Sort(lines)
		found[preset] = strings.Join(lines, "")
	}
	return found
}

// image is a root as an OS image has it before Ignition runs: files that configs append to, replace or keep.
func image(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	for _, dir := range []string{"etc", "home", "usr/local", "var/lib", "var/log"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"etc/hosts": "127.0.0.1 localhost\n", "etc/hostname": "image\n", "etc/cleared/old": "x", "etc/kept/old": "x",
		"etc/shut.key": "an older key", "etc/kubernetes/kubeconfig": "the image's",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, private := range []string{"etc/kept", "etc/cleared"} {
		if err := os.Chmod(filepath.Join(root, private), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
