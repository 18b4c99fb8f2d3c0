// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the server's own figures. Labels hold pools that exist, spec versions that are known, status codes and
// words of closed sets; nothing that a client chose.
type Metrics struct {
	requests   *prometheus.CounterVec
	refusals   *prometheus.CounterVec
	fallbacks  *prometheus.CounterVec
	gateLog    *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	bodyBytes  *prometheus.GaugeVec
	handshakes *prometheus.CounterVec
	turned     prometheus.Counter
	faults     prometheus.Counter
}

const namespace = "mcsnap"

// otherPool stands for every pool that the server does not know.
const otherPool = "other"

// NewMetrics registers the server's metrics.
func NewMetrics(into prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
		into.MustRegister(c)
		return c
	}
	m := &Metrics{
		requests:   counter("requests_total", "Answers for configs, by pool, spec version and status code.", "pool", "version", "code"),
		refusals:   counter("refusals_total", "Refused requests, by pool and reason.", "pool", "reason"),
		fallbacks:  counter("fallback_answers_total", "Answers with a pool's last selected snapshot, because what it names now was never captured.", "pool"),
		handshakes: counter("tls_handshake_failures_total", "TLS handshakes that failed, by what is known of why.", "code"),
		gateLog:    counter("gate_would_refuse_total", "Requests that were served only because the gate is in log mode, by reason.", "reason"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "request_duration_seconds",
			Help:    "Time from the request's header to the last byte of the answer, by route.",
			Buckets: []float64{.0005, .001, .005, .01, .05, .1, .5, 1, 5, 10, 60, 600},
		}, []string{"route"}),
		bodyBytes: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "body_bytes",
			Help: "Size of the body of a pool in a spec version, as it is and in gzip.",
		}, []string{"pool", "version", "encoding"}),
		turned: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "connections_refused_total", Help: "Connections closed because too many were open.",
		}),
		faults: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "store_read_faults_total", Help: "Snapshots and agents that could not be read or verified when a client asked for them.",
		}),
	}
	into.MustRegister(m.duration, m.bodyBytes, m.turned, m.faults)
	return m
}

// RegisterBuildInfo registers the one metric that says what runs.
func RegisterBuildInfo(into prometheus.Registerer, version string) {
	revision := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Always 1; the labels say what runs.",
	}, []string{"version", "revision", "go_version"})
	info.WithLabelValues(version, revision, runtime.Version()).Set(1)
	into.MustRegister(info)
}

// RegisterCertificateExpiry registers when the certificate that new connections get ends.
func RegisterCertificateExpiry(into prometheus.Registerer, notAfter func() time.Time) {
	into.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "tls_certificate_expiry_timestamp_seconds",
		Help: "When the server's certificate ends, in seconds since 1970.",
	}, func() float64 { return float64(notAfter().Unix()) }))
}

func (m *Metrics) count(pool, version string, status int) {
	m.requests.WithLabelValues(pool, version, strconv.Itoa(status)).Inc()
}
