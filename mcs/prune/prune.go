// SPDX-License-Identifier: Apache-2.0

// Package prune decides which stored snapshots may go. It is a pure mark over roots: whatever a pool or node names, was
// served a short time ago, or is among a pool's newest stays; the rest may go. It reads no cluster (see [Read] for that)
// and deletes nothing.
package prune

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// Roots is what the cluster names at one moment.
type Roots struct {
	// Pools are the names of the pools that exist.
	Pools map[string]bool
	// Named maps the names of rendered configs to who names them, such as "pool worker: spec".
	Named map[string][]string
	// Digests maps digests that nodes name (mcsnap/birth-snapshot) to who names them.
	Digests map[snapshot.Digest][]string
}

// Policy is how long what nobody names is kept.
type Policy struct {
	// KeepServed keeps what was served within this time: a node that has fetched it may not have joined yet. Once it has
	// its snapshot it needs the server no more, so this is a boot's longest time with a margin.
	KeepServed time.Duration
	// KeepNewest keeps so many of the newest rendered configs of each pool.
	KeepNewest int
	Now        time.Time
}

// Verdict is what becomes of one snapshot, and why.
type Verdict struct {
	store.Entry
	Keep bool `json:"keep"`
	// Reasons says why it is kept, or in one line why it may go.
	Reasons []string `json:"reasons"`
	// LeasedUntil is when its last service stops keeping it; zero if that does not keep it.
	LeasedUntil time.Time `json:"leasedUntil,omitzero"`
}

// Mark judges every entry. The same input gives the same verdicts, in the order of the entries.
func Mark(entries []store.Entry, roots Roots, policy Policy) []Verdict {
	newest := newest(entries, policy.KeepNewest)
	verdicts := make([]Verdict, 0, len(entries))
	for _, e := range entries {
		v := Verdict{Entry: e}
		v.Reasons = append(v.Reasons, roots.Named[e.Name]...)
		v.Reasons = append(v.Reasons, roots.Digests[e.Digest]...)
		for _, pool := range e.SelectedBy {
			if roots.Pools[pool] { // what stands in when the pool names a config that was never captured
				v.Reasons = append(v.Reasons, "pool "+pool+": answered with it last")
			}
		}
		if until := e.ServedAt.Add(policy.KeepServed); !e.ServedAt.IsZero() && policy.Now.Before(until) {
			v.LeasedUntil = until
			v.Reasons = append(v.Reasons, "served, leased until "+until.UTC().Format(time.RFC3339))
		}
		if newest[e.Digest] {
			v.Reasons = append(v.Reasons, fmt.Sprintf("among the newest %d of pool %s", policy.KeepNewest, e.Pool))
		}
		v.Keep = len(v.Reasons) > 0
		if !v.Keep {
			v.Reasons = []string{"no pool or node names it, and it " + lastServed(e)}
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

func lastServed(e store.Entry) string {
	if e.ServedAt.IsZero() {
		return "was never served"
	}
	return "was served last at " + e.ServedAt.UTC().Format(time.RFC3339)
}

// newest marks all digests of the newest n names of each pool: a name with two digests is one config.
func newest(entries []store.Entry, n int) map[snapshot.Digest]bool {
	type config struct {
		name string
		at   time.Time
	}
	pools := map[string][]config{}
	for _, e := range entries {
		configs := pools[e.Pool]
		if i := slices.IndexFunc(configs, func(c config) bool { return c.name == e.Name }); i < 0 {
			pools[e.Pool] = append(configs, config{e.Name, e.CapturedAt})
		} else if e.CapturedAt.After(configs[i].at) {
			configs[i].at = e.CapturedAt
		}
	}
	kept := map[[2]string]bool{}
	for pool, configs := range pools {
		slices.SortFunc(configs, func(a, b config) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.name, b.name)) })
		for _, c := range configs[:min(max(n, 0), len(configs))] {
			kept[[2]string{pool, c.name}] = true
		}
	}
	marked := map[snapshot.Digest]bool{}
	for _, e := range entries {
		marked[e.Digest] = kept[[2]string{e.Pool, e.Name}]
	}
	return marked
}
