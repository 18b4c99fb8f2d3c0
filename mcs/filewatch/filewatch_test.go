// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// watched runs Watch on folders for the length of the test and returns a channel with one value per call.
func watched(t *testing.T, timing Timing, folders ...string) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	calls, done := make(chan struct{}, 100), make(chan struct{})
	go func() {
		defer close(done)
		_ = Watch(ctx, slog.New(slog.DiscardHandler), folders, timing, func() { calls <- struct{}{} })
	}()
	t.Cleanup(func() { cancel(); <-done })
	time.Sleep(50 * time.Millisecond) // let it arm; the clock would only make the test slower, not wrong
	return calls
}

func await(t *testing.T, calls <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-calls:
	case <-time.After(10 * time.Second):
		t.Fatalf("no report of %s", what)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReportsWritesRenamesAndNewFolders(t *testing.T) {
	dir := t.TempDir()
	later := filepath.Join(dir, "later", "still-later")
	calls := watched(t, Timing{Quiet: 20 * time.Millisecond, Poll: time.Hour}, dir, later)

	write(t, filepath.Join(dir, "a"), "1")
	await(t, calls, "a new file")
	write(t, filepath.Join(dir, "b.new"), "2")
	if err := os.Rename(filepath.Join(dir, "b.new"), filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	await(t, calls, "a file replaced by a rename")
	if err := os.MkdirAll(later, 0o700); err != nil {
		t.Fatal(err)
	}
	await(t, calls, "a folder that appeared")
	write(t, filepath.Join(later, "c"), "3")
	await(t, calls, "a file in the folder that appeared")
}

func TestHoldsBackWhileFilesMove(t *testing.T) {
	dir := t.TempDir()
	calls := watched(t, Timing{Quiet: 300 * time.Millisecond, Poll: time.Hour}, dir)
	for range 10 {
		write(t, filepath.Join(dir, "a"), "part")
		time.Sleep(10 * time.Millisecond)
	}
	if len(calls) != 0 {
		t.Error("a change was passed on while the file was being written")
	}
	await(t, calls, "the finished file")
}

func TestNeverHoldsBackForEver(t *testing.T) {
	dir := t.TempDir()
	calls := watched(t, Timing{Quiet: time.Hour, Longest: 50 * time.Millisecond, Poll: time.Hour}, dir)
	stop := time.After(5 * time.Second)
	for {
		write(t, filepath.Join(dir, "a"), "again")
		select {
		case <-calls:
			return
		case <-stop:
			t.Fatal("a file that never rests hides every change")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestClockAlone(t *testing.T) {
	calls := watched(t, Timing{Poll: 10 * time.Millisecond}, filepath.Join(t.TempDir(), "never", "made"))
	await(t, calls, "the clock")
	await(t, calls, "the clock again")
}
