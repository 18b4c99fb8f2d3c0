// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"context"
	"log/slog"

	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
)

// Options are what a first boot needs from outside. Node is required.
type Options struct {
	Node *root.Root

	// Fetch gets a snapshot back from the node's servers. Nil means that none is asked.
	Fetch Fetch

	// Tell says how far the boot is and how it ended. Nil means that nobody listens.
	Tell Teller

	// BootID and Version are written into the record.
	BootID, Version string

	// Log is nil for none.
	Log *slog.Logger
}

// Fetch gets the snapshot of a digest from the servers of a config and verifies it. It retries by itself until it
// succeeds or gives up, and says how many attempts it made. token is the content of the token file, "" without one.
type Fetch func(ctx context.Context, config *Config, token string, digest snapshot.Digest) (s *snapshot.Snapshot, attempts int, err error)

// Teller is whoever waits for the boot: systemd and the journal, or a test.
type Teller interface {
	// Status is one line about what is going on.
	Status(line string)
	// Ended is called once, with the error when the boot failed. What the outcome says is on stable storage by then.
	Ended(Outcome, error)
}

// Result is what a first boot came to.
type Result string

const (
	// Joined means that the node has joined its cluster before: nothing was changed.
	Joined Result = "joined"
	// HandedOver means that the daemon's current config was written.
	HandedOver Result = "handed-over"
	// Unchanged means that the hand-over had been done before and is whole.
	Unchanged Result = "unchanged"
	// Failed comes with an error.
	Failed Result = "failed"
)

// Source is where the snapshot that was handed over came from.
type Source string

const (
	// Embedded is the file that Ignition wrote.
	Embedded Source = "embedded"
	// Fetched is the server, by digest, after the file was damaged or lost.
	Fetched Source = "fetched"
)

// Outcome is how a first boot ended.
type Outcome struct {
	Result   Result          `json:"result"`
	Reason   string          `json:"reason"` // in words
	Name     string          `json:"name,omitempty"`
	Digest   snapshot.Digest `json:"digest,omitempty"`
	Source   Source          `json:"source,omitempty"`
	Attempts int             `json:"attempts,omitempty"` // requests made to get the snapshot back
	Overlays int             `json:"overlays,omitempty"` // files that were served newer than rendered
}

type silent struct{}

func (silent) Status(string)        {}
func (silent) Ended(Outcome, error) {}

// Run takes a node through its first boot. It may be run at any time and any number of times. The error is one of this
// package's types.
func Run(ctx context.Context, options Options) (Outcome, error) {
	if options.Tell == nil {
		options.Tell = silent{}
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	b := &boot{Options: options, unlock: func() {}}
	defer func() { b.unlock() }()
	var err error
	for next := state(checkJoined); next != nil && err == nil; {
		onState()
		next, err = next(ctx, b)
	}
	if err != nil {
		b.outcome.Result, b.outcome.Reason = Failed, err.Error()
	}
	options.Tell.Ended(b.outcome, err)
	return b.outcome, err
}

// onState is called before each state, for tests that kill the process there.
var onState = func() {}

// boot is what one run has found out.
type boot struct {
	Options
	born    *Annotations       // nil when there is no live annotations file
	raw     []byte             // the snapshot's file as found
	problem error              // what is wrong with it
	snap    *snapshot.Snapshot // verified
	record  Record
	outcome Outcome
	unlock  func()
}

// end sets how the run ended well.
func (b *boot) end(result Result, reason string) {
	b.outcome.Result, b.outcome.Reason = result, reason
}
