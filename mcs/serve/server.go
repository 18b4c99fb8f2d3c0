// SPDX-License-Identifier: Apache-2.0

// Package serve is the HTTP face of the server: which paths there are, who may have what, how it is sent, and what
// becomes of a server that is full or that ends. Bodies come ready from publish; a request is a look-up and one write.
//
// Its rules come from Ignition, which retries connection errors and 5xx for ever and takes every other answer as final.
package serve

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsnap/mcsnap/mcs/publish"
	"github.com/mcsnap/mcsnap/mcs/specver"
)

// Answers is where the server looks up pools.
type Answers interface {
	// Answer is called for every request and must not wait for anything.
	Answer(pool string) (*publish.Answer, bool)
	// Absent says why a pool has no answer.
	Absent(pool string) publish.Absence
	// Checks says what readiness hangs on.
	Checks() []publish.Check
}

// Config of a Server. Answers, Snapshots, Metrics and Log are needed.
type Config struct {
	Answers   Answers
	Snapshots Snapshots
	// Agents is where agent binaries are; nil means that none are handed out.
	Agents  Agents
	Metrics *Metrics
	Log     *slog.Logger

	// Notes says what /readyz?verbose tells besides, without readiness hanging on it; nil means nothing.
	Notes func() []publish.Check

	// Pools limits the pools that are answered for; the others are told that another server does. Empty means all.
	Pools []string
	// DefaultSpec is served to clients that name no Ignition version; zero means the config's own.
	DefaultSpec specver.Version
	// RejectUnknownPools answers 404 for a pool that was never seen, which ends the boot, once it is known what pools
	// there are. Otherwise 503: it may be made.
	RejectUnknownPools bool
	// Gate says who may have a config.
	Gate Gate
	// AccessLog writes one line per request.
	AccessLog bool

	// MaxInFlight is how many requests are answered at the same time; more get a 503 at once. 0 means 2048.
	MaxInFlight int
	// MaxConnections is how many connections may be open; more are closed at once. 0 means 8192.
	MaxConnections int
	// HeaderTimeout is how long a client may take for TLS and the request's header. 0 means 5 s.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a connection without a request stays open. 0 means 30 s.
	IdleTimeout time.Duration
	// StallTimeout is how long a client may take nothing of a body (32 KiB) before it counts as gone. There is no
	// limit on the whole. 0 means 60 s.
	StallTimeout time.Duration
	// DrainTimeout is how long bodies that are on their way may still take when the server ends. 0 means 60 s.
	DrainTimeout time.Duration
	// MaxHeaderBytes bounds a request's header. 0 means 16 KiB.
	MaxHeaderBytes int
}

func (c Config) withDefaults() Config {
	number := func(n *int, value int) {
		if *n <= 0 {
			*n = value
		}
	}
	duration := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	number(&c.MaxInFlight, 2048)
	number(&c.MaxConnections, 8192)
	number(&c.MaxHeaderBytes, 16<<10)
	duration(&c.HeaderTimeout, 5*time.Second)
	duration(&c.IdleTimeout, 30*time.Second)
	duration(&c.StallTimeout, 60*time.Second)
	duration(&c.DrainTimeout, 60*time.Second)
	return c
}

// Server is an http.Handler; Run also listens.
type Server struct {
	cfg        Config
	metrics    *Metrics
	admission  admission
	complaints complaints
	table      atomic.Pointer[map[string]*prepared]
	snapshots  *shelf[*representation]
	agents     *shelf[agentForms]
	durations  map[string]prometheus.Observer
	draining   atomic.Bool
}

// How many snapshots and agents that were read from disk stay in memory.
const (
	shelvedSnapshots = 16
	shelvedAgents    = 4
)

// New returns a Server.
func New(cfg Config) *Server {
	s := &Server{
		cfg:        cfg.withDefaults(),
		metrics:    cfg.Metrics,
		complaints: complaints{log: cfg.Log},
		snapshots:  newShelf[*representation](shelvedSnapshots),
		agents:     newShelf[agentForms](shelvedAgents),
		durations:  map[string]prometheus.Observer{},
	}
	s.admission.most = int64(s.cfg.MaxInFlight)
	s.table.Store(&map[string]*prepared{})
	for _, route := range []string{routeConfig, routeSnapshot, routeAgent, routeHealth, routeNone} {
		s.durations[route] = cfg.Metrics.duration.WithLabelValues(route)
	}
	return s
}

// checks is what /readyz answers from.
func (s *Server) checks() []publish.Check {
	if s.draining.Load() {
		return []publish.Check{{Name: "running", Problem: "the server is ending"}}
	}
	return s.cfg.Answers.Checks()
}
