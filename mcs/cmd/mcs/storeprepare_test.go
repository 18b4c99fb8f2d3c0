// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/server"
)

// The folder is the group's, others are kept out, and it can be done again. (That it needs no capability, and that a server
// of that group runs on it, is what e2e/deploy shows.)
func TestStorePrepare(t *testing.T) {
	dir, group := filepath.Join(t.TempDir(), "a", "state"), os.Getgid()
	for range 2 {
		if _, stderr, code := server.Execute(t, "store", "prepare", "--state-dir", dir, "--group", strconv.Itoa(group)); code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := int(info.Sys().(*syscall.Stat_t).Gid); got != group || info.Mode().Perm() != 0o770 {
			t.Errorf("group %d, mode %v", got, info.Mode())
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"2 --group is missing": {"--state-dir", dir},
		"2 --state-dir is":     {"--state-dir", "", "--group", "1"},
		"4 state folder":       {"--state-dir", filepath.Join(file, "x"), "--group", "1"},
	} {
		number, text, _ := strings.Cut(want, " ")
		_, stderr, code := server.Execute(t, append([]string{"store", "prepare"}, args...)...)
		if strconv.Itoa(code) != number || !strings.Contains(stderr, text) {
			t.Errorf("%q: exit code %d, %s; want %s", args, code, stderr, want)
		}
	}
}
