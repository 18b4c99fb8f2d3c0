// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/e2e/kube"
)

// From the API's answer to the write that has a pool name a new config, until the server gives that config to a machine:
// capture on stable storage, composition in every version and publication included. One run is its hundred rounds.
func BenchmarkCaptureLatency(t *testing.B) {
	const rounds = 100
	c := kube.Start(t, kube.Options{})
	s := newServer(t, c, c.Kubeconfig(c.Admin))
	s.Up()
	client := s.Client()
	defer client.CloseIdleConnections()
	var took []time.Duration
	for n := range rounds {
		name := fmt.Sprintf("rendered-worker-%032x", n)
		c.Apply(kube.Configs, "", kube.Rendered(name, name+" ", configSize))
		c.Apply(kube.Pools, "", kube.Pool("worker", name, name, 1))
		begun := time.Now()
		machine := &node{client: client, url: s.URL() + "/config/worker"}
		s.Eventually("served", func() error {
			if _, err := machine.attempt(t.Context()); err != nil {
				return err
			}
			if machine.rendered != name {
				return fmt.Errorf("still %s", machine.rendered)
			}
			return nil
		})
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	percentile := func(p int) time.Duration { return took[min(rounds*p/100, rounds-1)].Round(time.Millisecond) }
	t.ReportMetric(float64(percentile(50).Milliseconds()), "p50-ms")
	t.ReportMetric(float64(percentile(99).Milliseconds()), "p99-ms")
	t.Logf("latency: rounds=%d size=%d p50=%v p99=%v max=%v", rounds, configSize, percentile(50), percentile(99), took[rounds-1].Round(time.Millisecond))
	if percentile(99) > 5*time.Second {
		t.Errorf("p99 is %v: a machine that asks every five seconds would be late", percentile(99))
	}
}
