// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsnap/mcsnap/snapshot"
)

// Where the snapshot in a pool's answer is, as a metric's label.
const (
	// OriginSource: the source still has the rendered config, the cluster or the folder.
	OriginSource = "source"
	// OriginStore: the source has it no more, the store does.
	OriginStore = "store"
	// OriginMemory: it is in this process's memory only; a restart would lose it.
	OriginMemory = "memory"
)

// holder is a store that keeps in memory what its disk does not take.
type holder interface {
	Holds(snapshot.Digest) bool
}

// Origin returns where the snapshot in a pool's answer is, "" when there is none.
func (p *Publisher) Origin(pool string) string {
	a, ok := p.Answer(pool)
	if !ok || !a.Ready() {
		return ""
	}
	if h, is := p.cfg.Store.(holder); is && h.Holds(a.Digest) {
		return OriginMemory
	}
	if exists := p.exists.Load(); exists != nil && (*exists)[a.Digest] {
		return OriginSource
	}
	return OriginStore
}

// origins is Origin of all pools as a metric. It is worked out when it is asked for: a disk that takes what was held
// changes no answer.
type origins struct{ of *Publisher }

var originDesc = prometheus.NewDesc("mcsnap_pool_origin",
	"Where the pool's snapshot is: source (the cluster or folder still has it), store, or memory (a restart would lose it).",
	[]string{"pool", "origin"}, nil)

func (origins) Describe(into chan<- *prometheus.Desc) { into <- originDesc }
func (o origins) Collect(into chan<- prometheus.Metric) {
	for _, pool := range o.of.Pools() {
		if origin := o.of.Origin(pool); origin != "" {
			into <- prometheus.MustNewConstMetric(originDesc, prometheus.GaugeValue, 1, pool, origin)
		}
	}
}
