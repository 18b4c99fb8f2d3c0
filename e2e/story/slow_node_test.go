// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package story

import (
	"testing"
	"time"
)

// A machine fetched generation 1 and lost power before its first boot had run. When it comes back the cluster is at
// generation 4, generation 1 is long deleted, and the server has been restarted since. The node is generation 1, whole,
// and knows it without asking anybody: that is where its daemon starts the update to 4 from.
func TestSlowNode(t *testing.T) {
	s := raise(t, "The slow node: three generations late")
	n := s.newNode("slow")
	s.must(n.SwitchOn())
	s.loses(n)

	for generation := 2; generation <= 4; generation++ {
		s.renders(generation)
	}
	s.deletes(1)
	s.serverStops()
	s.serverStarts()
	s.must(s.server.Serves(t.Context(), "worker", s.generation(4).Name))

	s.boots(n)

	s.isGeneration(n, 1, "embedded")
}

// The server is away for the whole boot. A snapshot that verifies needs nobody.
func TestOutage(t *testing.T) {
	s := raise(t, "The outage: no server for the whole boot")
	n := s.newNode("outage")
	s.serverDies()

	began := time.Now()
	s.boots(n)
	t.Logf("up %v after it was switched on", time.Since(began).Round(time.Millisecond))

	s.isGeneration(n, 1, "embedded")
}
