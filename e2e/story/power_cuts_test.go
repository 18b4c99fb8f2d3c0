// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package story

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Power fails at a random moment of the first boot, again and again, on machines whose snapshot has to be fetched back
// first. Wherever it fails, the boot that is allowed to finish ends in the same state. (The kernel lives on here, so
// what was written is not lost as on a real power cut; snapshot/durable's own tests are for that.)
func TestPowerCuts(t *testing.T) {
	const machines, cuts = 3, 3
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := raise(t, "Power cuts, again and again")
	whole := s.newNode("whole")
	began := time.Now()
	s.boots(whole)
	boot := time.Since(began) // the agent's part is a few milliseconds somewhere in its second half
	s.must(whole.PowerOff(t.Context()))

	for machine := range machines {
		n := s.newNode(fmt.Sprintf("cut%d", machine))
		s.flips(n)
		for range cuts {
			s.must(n.SwitchOn())
			time.Sleep(boot/4 + time.Duration(random.Int64N(int64(boot))))
			s.loses(n)
		}
		s.boots(n)
		s.isGeneration(n, 1, "fetched")
		s.must(n.PowerOff(t.Context()))
	}
}
