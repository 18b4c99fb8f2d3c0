// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	"github.com/mcsnap/mcsnap/snapshot"
)

// longestRest bounds how long a failed update is left alone.
const longestRest = 5 * time.Minute

// respite keeps a failed update from being tried again at every change of the Node, of which the daemon's own annotations
// are one. The zero value rests from nothing.
type respite struct {
	from     snapshot.Digest // the config that failed
	until    time.Time
	failures int
}

// now tells whether a config is resting.
func (r *respite) now(config snapshot.Digest) bool {
	return r.from == config && time.Now().Before(r.until)
}

// failed has a config rest: for a pause, doubled by each failure in a row.
func (r *respite) failed(config snapshot.Digest, pause time.Duration) {
	if r.from != config {
		*r = respite{from: config}
	}
	r.until = time.Now().Add(min(pause<<min(r.failures, 16), longestRest))
	r.failures++
}
