// SPDX-License-Identifier: Apache-2.0

package publish

import "github.com/prometheus/client_golang/prometheus"

// metrics of composition; the pools in their labels are those of the source.
type metrics struct {
	ready, stale, fallback *prometheus.GaugeVec
	composed, captured     *prometheus.GaugeVec
	composeFailures        *prometheus.CounterVec
	composeTime            prometheus.Histogram
	storeFaults            prometheus.Counter
}

func newMetrics(into prometheus.Registerer) *metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "mcsnap", Name: name, Help: help}, []string{"pool"})
	}
	m := &metrics{
		ready:    gauge("pool_ready", "1 when the pool has a body to serve."),
		stale:    gauge("pool_stale", "1 when the pool is served from its last good state, because its present one has a problem."),
		fallback: gauge("pool_fallback", "1 when the pool is served its last selected snapshot, because what it names was never captured."),
		composed: gauge("pool_composed_timestamp_seconds", "When the pool's bodies were made, in seconds since 1970."),
		captured: gauge("snapshot_captured_timestamp_seconds", "When the pool's snapshot was captured, in seconds since 1970."),
		composeFailures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "mcsnap", Name: "compose_failures_total", Help: "Compositions that failed.",
		}, []string{"pool"}),
		composeTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "mcsnap", Name: "compose_duration_seconds", Help: "Time to make all bodies of one pool.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		storeFaults: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "mcsnap", Name: "store_faults_total", Help: "Store operations that failed while answers were made.",
		}),
	}
	if into != nil {
		into.MustRegister(m.ready, m.stale, m.fallback, m.composed, m.captured, m.composeFailures, m.composeTime, m.storeFaults)
	}
	return m
}

func (m *metrics) show(a *Answer) {
	set := func(g *prometheus.GaugeVec, is bool) {
		value := 0.0
		if is {
			value = 1
		}
		g.WithLabelValues(a.Pool).Set(value)
	}
	set(m.ready, a.Ready())
	set(m.stale, a.Stale != "")
	set(m.fallback, a.Fallback)
	m.composeFailures.WithLabelValues(a.Pool) // there from the start, so that a rate has something to rise from
	if a.Ready() {
		m.composed.WithLabelValues(a.Pool).Set(float64(a.Composed.Unix()))
	}
	if !a.Captured.IsZero() {
		m.captured.WithLabelValues(a.Pool).Set(float64(a.Captured.Unix()))
	}
}

func (m *metrics) forget(pool string) {
	for _, g := range []*prometheus.GaugeVec{m.ready, m.stale, m.fallback, m.composed, m.captured} {
		g.DeleteLabelValues(pool)
	}
	m.composeFailures.DeleteLabelValues(pool)
}
