// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package story

import (
	"fmt"
	"sync"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/node"
	"github.com/mcsnap/mcsnap/e2e/witness"
)

// The incident that started it (machine-config-operator#301): a cluster comes up and renders four configs within
// seconds, while machines fetch whichever is there at their moment; each config is deleted as soon as the next is
// served. The machines boot when all they were born from is gone. Each knows what it is, and a daemon on it that looks
// its config up by name gets it, though the cluster has only the fourth.
func TestIncident(t *testing.T) {
	s := raise(t, "The incident: four generations within seconds")
	var machines []*node.Node
	for generation := 1; generation <= 3; generation++ {
		machines = append(machines, s.newNode(fmt.Sprintf("born%d", generation)))
		s.renders(generation + 1)
		s.deletes(generation)
	}
	if known, err := s.cluster.List(everything); err != nil || len(known) != 1 {
		t.Fatalf("the cluster knows %d configs, %v; want the fourth alone", len(known), err)
	}

	var booting sync.WaitGroup
	failures := make([]error, len(machines))
	for i, n := range machines {
		booting.Go(func() { failures[i] = s.tryBoot(n) })
	}
	booting.Wait()

	for i, n := range machines {
		s.must(failures[i])
		s.isGeneration(n, i+1, "embedded")
		desired, err := witness.Desired(n.Root())
		s.must(err)
		if want := s.generation(i + 1).Name; desired != want {
			t.Errorf("%s will be annotated with %s, want %s", n.Name, desired, want)
		}
		if _, err := s.cluster.Get(desired); err == nil {
			t.Errorf("the cluster still has %s: nothing was proven", desired)
		}
	}
}
