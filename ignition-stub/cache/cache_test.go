// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/ignition-stub/cache"
)

func TestCache(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	dir, err := cache.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	const url = "https://h/config/worker?secret=S3CR3T"
	if _, err := dir.Find(url); !errors.Is(err, cache.ErrNotKept) {
		t.Errorf("an empty cache: %v", err)
	}
	for _, body := range []string{"one", "two", "two", ""} {
		if err := dir.Keep(url, []byte(body)); err != nil {
			t.Fatal(err)
		}
		if got, err := dir.Find(url); err != nil || string(got) != body {
			t.Errorf("got %q, %v; want %q", got, err, body)
		}
	}
	if err := dir.Keep(url, []byte("two")); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(path, "*", "*"))
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 || strings.Contains(file, "S3CR3T") {
			t.Errorf("%s: %v, %v; want mode 0600 and no secret in the name", file, info.Mode(), err)
		}
		if text, _ := os.ReadFile(file); string(text) == "two" {
			if err := os.WriteFile(file, []byte("tw0"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A damaged body is not given, and does not stay in the way.
	for range 2 {
		if _, err := dir.Find(url); !errors.Is(err, cache.ErrNotKept) {
			t.Errorf("a changed body: %v", err)
		}
	}
	if err := dir.Keep(url, []byte("two")); err != nil {
		t.Fatal(err)
	}
	if got, err := dir.Find(url); err != nil || string(got) != "two" {
		t.Errorf("after the damage: %q, %v", got, err)
	}
}
