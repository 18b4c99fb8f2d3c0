// SPDX-License-Identifier: Apache-2.0

// Package filewatch says when files may have changed: at once through the kernel's notifications, and on a slow clock
// because those get lost (network file systems, an exhausted inotify limit, a folder that did not exist yet).
//
// It does not look into files and does not say which one changed: its users read what they need again.
package filewatch

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Timing says how quickly changes are passed on. The zero value means the defaults.
type Timing struct {
	// Quiet is how long nothing may move before a change is passed on, so that a file that is being written is not
	// read half. Default 250 ms.
	Quiet time.Duration
	// Longest is how long a change is held back when the files never come to rest. Default 5 s.
	Longest time.Duration
	// Poll is how often to report whatever the kernel says. Default 10 s.
	Poll time.Duration
}

func (t Timing) orDefaults() Timing {
	if t.Quiet <= 0 {
		t.Quiet = 250 * time.Millisecond
	}
	if t.Longest <= 0 {
		t.Longest = 5 * time.Second
	}
	if t.Poll <= 0 {
		t.Poll = 10 * time.Second
	}
	return t
}

// Watch calls changed, one call at a time, whenever something in one of the folders may have changed, and once per
// Poll anyway, until ctx ends. Folders are watched without what is below them; one that does not exist yet is waited
// for. Watch always returns nil: without notifications it says so once and goes on with the clock alone.
func Watch(ctx context.Context, log *slog.Logger, folders []string, timing Timing, changed func()) error {
	timing = timing.orDefaults()
	poll := time.NewTicker(timing.Poll)
	defer poll.Stop()

	var events chan fsnotify.Event
	var faults chan error
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("files are looked at on a clock only: the kernel gives no notifications",
			"every", timing.Poll, "error", err)
	} else {
		defer func() { _ = watcher.Close() }()
		events, faults = watcher.Events, watcher.Errors
	}
	arm(watcher, folders)

	quiet := time.NewTimer(timing.Quiet)
	quiet.Stop()
	var first time.Time // when the change that is being held back began; zero when there is none
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-faults: // an overflow: something was lost, so everything may have changed
			first = time.Now()
			quiet.Reset(timing.Quiet)
		case <-events:
			if first.IsZero() {
				first = time.Now()
			}
			quiet.Reset(min(timing.Quiet, max(0, timing.Longest-time.Since(first))))
		case <-quiet.C:
			first = time.Time{}
			arm(watcher, folders)
			changed()
		case <-poll.C:
			arm(watcher, folders)
			if first.IsZero() {
				changed()
			}
		}
	}
}

// arm watches each folder, or the nearest parent that exists. Adding a folder again costs nothing, and it is needed:
// a folder that was removed and made anew is another folder to the kernel.
func arm(watcher *fsnotify.Watcher, folders []string) {
	if watcher == nil {
		return
	}
	for _, folder := range folders {
		for {
			if info, err := os.Stat(folder); err == nil && info.IsDir() {
				_ = watcher.Add(folder) // the clock stands in when this fails
				break
			}
			parent := filepath.Dir(folder)
			if parent == folder {
				break
			}
			folder = parent
		}
	}
}
