// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"maps"
	"slices"
	"time"
)

// A Check is one thing that must be so before the server is ready.
type Check struct {
	Name string
	// Problem is one line on why it is not so, "" when it is.
	Problem string
	// Note is one line on what is wrong with it all the same, "" when all is well.
	Note string
}

// Checks returns what readiness hangs on, in a fixed order. A pool that is answered from its last good state is ready.
func (p *Publisher) Checks() []Check {
	table := *p.table.Load()
	pools := p.cfg.Required
	if len(pools) == 0 {
		pools = slices.Sorted(maps.Keys(table))
	}
	var checks []Check
	for _, pool := range pools {
		check := Check{Name: "pool-" + pool}
		switch a := table[pool]; {
		case a == nil:
			check.Problem = "the pool is not known yet"
		case !a.Ready():
			check.Problem = a.Reason
		case a.Stale != "":
			check.Note = "the last good state is served: " + a.Stale
		case a.Fallback:
			check.Note = "what it names was never captured; " + a.Rendered + ", its last selected, is served"
		}
		checks = append(checks, check)
	}
	if len(checks) == 0 {
		checks = []Check{{Name: "pools", Problem: "no pool is known yet"}}
	}
	return checks
}

// Pools returns the known pools in order.
func (p *Publisher) Pools() []string { return slices.Sorted(maps.Keys(*p.table.Load())) }

// FlushServed writes down when snapshots were last given to a client. It is called now and then, so that serving
// never waits for a disk.
func (p *Publisher) FlushServed(ctx context.Context) {
	p.servedMu.Lock()
	defer p.servedMu.Unlock()
	for digest, at := range p.served {
		unix := at.Swap(0)
		if unix == 0 {
			continue
		}
		if err := p.cfg.Store.MarkServed(ctx, digest, time.Unix(unix, 0).UTC()); err != nil {
			p.metrics.storeFaults.Inc()
			at.CompareAndSwap(0, unix)
		}
	}
}
