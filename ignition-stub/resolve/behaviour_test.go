// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package resolve_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/e2e/lab"
	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
	"github.com/mcsnap/mcsnap/ignition-stub/fetch/fetchtest"
	"github.com/mcsnap/mcsnap/ignition-stub/resolve"
	"github.com/mcsnap/mcsnap/ignition-stub/stub"
)

var update = flag.Bool("update", false, "write what was measured into docs/fetch-behaviour.md")

const (
	httpTotal = 6 // seconds; without it Ignition would try for ever
	deadline  = 3 * time.Second
)

// Each row of docs/fetch-behaviour.md is what ignition-stub fetch and the real Ignition do with the same stub and the
// same server, measured here.
func TestBehaviour(t *testing.T) {
	lines := make([]string, len(fetchtest.Rows))
	limit, all := make(chan struct{}, 6), sync.WaitGroup{}
	for i, row := range fetchtest.Rows {
		all.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			lines[i] = fmt.Sprintf("| %s | %s | %s | %s | %s |", row.Name,
				ours(t, row, fetchtest.ForEver), ours(t, row, 2), ignitions(t, row, fetchtest.ForEver), ignitions(t, row, 2))
		})
	}
	all.Wait()
	table := strings.Join(lines, "\n") + "\n"
	const page = "../../docs/fetch-behaviour.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "<!-- measured -->\n")
	head, old, _ := strings.Cut(rest, "|---|---|---|---|---|\n")
	old, after, found := strings.Cut(old, "<!-- end -->")
	if !found {
		t.Fatalf("%s has no place for the table", page)
	}
	if *update {
		text := before + "<!-- measured -->\n" + head + "|---|---|---|---|---|\n" + table + "<!-- end -->" + after
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	held := map[string]bool{}
	for _, line := range strings.Split(old, "\n") {
		held[line] = true
	}
	for _, line := range lines {
		if !held[line] {
			t.Errorf("measured, and not what the page says (run again with -update):\n%s", line)
		}
	}
}

var config = fmt.Appendf(nil, `{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/arrived","contents":{"source":"data:,%s"}}]}}`,
	strings.Repeat("yes,", 2000))

// stubOf is a stub as it is rendered. Only where the bytes are changed does it name their hash: a pool's config changes,
// so stubs have none.
func stubOf(t *testing.T, s *fetchtest.Server, row fetchtest.Row) []byte {
	made, err := stub.Render(stub.Options{URL: s.URL, CAs: [][]byte{s.CA}, HTTPResponseHeaders: 1, HTTPTotal: httpTotal})
	if err != nil {
		t.Error(err)
		return nil
	}
	if row.Name == "other bytes of the same length" {
		return []byte(strings.Replace(string(made.JSON), `/config/worker"`, `/config/worker","verification":{"hash":"`+s.Digest+`"}`, 1))
	}
	return made.JSON
}

func ours(t *testing.T, row fetchtest.Row, times int) string {
	s := fetchtest.Start(t, row, times, config)
	o := resolve.Options{Fetch: fetch.Options{Deadline: deadline, AttemptTimeout: time.Second, StallTimeout: time.Second, MaxBytes: 1 << 20,
		BackoffMin: 50 * time.Millisecond, BackoffMax: 200 * time.Millisecond, RetryAfterMax: 300 * time.Millisecond}}
	if times != fetchtest.ForEver {
		o.Fetch.Deadline = 10 * deadline
	}
	_, err := resolve.Resolve(t.Context(), stubOf(t, s, row), o)
	gaveUp, ok := errors.AsType[*fetch.GaveUpError](err)
	switch {
	case err == nil:
		return "arrives"
	case !ok:
		t.Errorf("%s: %v", row.Name, err)
		return "?"
	}
	kind := gaveUp.Troubles[0].Kind
	switch {
	case gaveUp.Cause != nil:
		return fmt.Sprintf("tries until the deadline (%s)", kind)
	case gaveUp.Attempts == 1:
		return fmt.Sprintf("ends at once (%s)", kind)
	}
	return fmt.Sprintf("ends after %d tries (%s)", gaveUp.Attempts, kind)
}

func ignitions(t *testing.T, row fetchtest.Row, times int) string {
	s := fetchtest.Start(t, row, times, config)
	root := filepath.Join(t.TempDir(), "root")
	booted, err := lab.Boot{Config: stubOf(t, s, row), Root: root, Timeout: 5 * httpTotal * time.Second}.Run(t.Context())
	if err == nil {
		if _, err := os.Stat(filepath.Join(root, "etc/arrived")); err != nil {
			return "**boots a bare machine**"
		}
		return "arrives"
	}
	failed, ok := errors.AsType[*lab.StageError](err)
	switch {
	case !ok || failed.Stage != "fetch":
		t.Errorf("%s: %v", row.Name, err)
		return "?"
	case errors.Is(err, context.DeadlineExceeded):
		return "never ends"
	case !strings.Contains(booted.Log, "Client.Timeout") && !strings.Contains(booted.Log, "deadline exceeded") && !strings.Contains(booted.Log, "resource in time"):
		return "**fails at once**"
	case s.Happened() == 1:
		return "waits until `httpTotal`"
	}
	return "retries until `httpTotal`"
}
