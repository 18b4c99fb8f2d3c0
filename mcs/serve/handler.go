// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// exchange is one request and what became of it, for the log and the metrics.
type exchange struct {
	request *http.Request
	begun   time.Time
	route   string // of a closed set
	pool    string // the pool of a config request, checked; "" otherwise
	version string // the spec version of the body, "" when there is none
	// rendered and digest name the snapshot that was sent or is in the body.
	rendered, digest string
	status           int
	bytes            int64
	reason           string // the code of a refusal
}

// The routes, as logs and metrics name them.
const (
	routeConfig   = "config"
	routeSnapshot = "snapshot"
	routeAgent    = "agent"
	routeHealth   = "health"
	routeNone     = "none"
)

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// ServeHTTP answers one request. The paths are matched here and not by http.ServeMux, which answers paths it would
// write differently with a redirect: Ignition follows it and drops its headers, Accept and Authorization with them.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := exchanges.Get().(*exchange)
	*e = exchange{request: r, begun: time.Now(), route: routeNone}
	if f := s.answer(w, r, e); f != nil {
		e.status, e.reason = f.status, f.code
		e.bytes = int64(f.write(w, r.Method))
		if f.status == http.StatusServiceUnavailable {
			s.complaints.say(e.pool, f)
		}
		s.metrics.refusals.WithLabelValues(s.poolLabel(e.pool), f.code).Inc()
		if e.route == routeConfig {
			s.metrics.count(s.poolLabel(e.pool), "", f.status)
		}
	}
	s.durations[e.route].Observe(time.Since(e.begun).Seconds())
	s.logged(r.Context(), e)
	e.request = nil
	exchanges.Put(e)
}

// answer sends a body and returns nil, or returns why there is none.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, e *exchange) *refusal {
	path := r.URL.Path
	var handle func(http.ResponseWriter, *http.Request, *exchange, string) *refusal
	var rest string
	gated := true
	switch {
	case strings.HasPrefix(path, configPrefix):
		e.route, rest, handle = routeConfig, path[len(configPrefix):], s.config
	case strings.HasPrefix(path, snapshotPrefix):
		e.route, rest, handle = routeSnapshot, path[len(snapshotPrefix):], s.snapshot
	case strings.HasPrefix(path, agentPrefix):
		e.route, rest, handle = routeAgent, path[len(agentPrefix):], s.agent
		gated = false // nothing secret, and Ignition cannot send a token with every file
	case path == "/healthz", path == "/readyz":
		e.route = routeHealth
	default:
		return &refusal{http.StatusNotFound, "no-such-path", "no such path; configs are under /config/<pool>"}
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return &refusal{http.StatusMethodNotAllowed, "method", "only GET and HEAD are answered"}
	}
	if e.route == routeHealth { // never refused for lack of room: a busy server is a healthy one
		return s.health(w, r, e)
	}
	if !s.admission.enter() {
		return notNow("overload", "too many requests at once; ask again")
	}
	defer s.admission.leave()
	if e.route == routeConfig {
		pool, gz, f := s.splitPool(rest)
		if e.pool = pool; f != nil {
			return f
		}
		if gz {
			handle = s.configGzip
		}
		rest = pool
	}
	if gated {
		if f := s.gate(r); f != nil {
			return f
		}
	}
	return handle(w, r, e, rest)
}

// gate asks the gate; in log mode it only says what the gate would have done.
func (s *Server) gate(r *http.Request) *refusal {
	f := s.cfg.Gate.check(r)
	if f != nil && s.cfg.Gate.LogOnly {
		s.metrics.gateLog.WithLabelValues(f.code).Inc()
		s.cfg.Log.Warn("served, but the gate would refuse", "address", r.RemoteAddr, "code", f.code)
		return nil
	}
	return f
}

// poolLabel bounds the pools in metrics to those that exist.
func (s *Server) poolLabel(pool string) string {
	switch _, known := s.cfg.Answers.Answer(pool); {
	case pool == "":
		return ""
	case known:
		return pool
	}
	return otherPool
}
