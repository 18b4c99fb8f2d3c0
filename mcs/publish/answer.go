// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"sync/atomic"
	"time"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot"
)

// An Answer is all that is needed to answer for one pool. It is never changed after it was published.
type Answer struct {
	Pool string
	// Bodies holds one body per spec version that the pool's config can be served in; empty when there is a Reason.
	Bodies map[specver.Version]*compose.Body
	// Own is the version the config was rendered in, the newest that is served.
	Own specver.Version
	// Inexpressible says why a version is not among the bodies.
	Inexpressible map[specver.Version]error
	// Digest and Rendered name the snapshot in the bodies.
	Digest   snapshot.Digest
	Rendered string
	// Fallback reports that Digest is the pool's last selected snapshot and not what the pool names now.
	Fallback bool
	// Code and Reason say why there is no body: Code for machines, one of a closed set; Reason in one line.
	Code, Reason string
	// Stale says in one line why the bodies are older than the pool's state, "" when they are not.
	Stale string
	// Composed is when the bodies were made, Captured when the snapshot in them was; zero where that is not known.
	Composed, Captured time.Time

	inputs string        // what the bodies were made from; equal inputs give equal bodies
	served *atomic.Int64 // when a client was last given the snapshot, in seconds since 1970; 0 when written down
}

// Ready reports whether the pool has a body.
func (a *Answer) Ready() bool { return a != nil && a.Reason == "" && len(a.Bodies) > 0 }
