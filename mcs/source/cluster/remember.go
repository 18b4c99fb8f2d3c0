// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/durable"
)

// memory is what outlives a restart, in STATE/cluster.json: all that is needed to answer nodes while the API server is
// away, and from where to read on.
type memory struct {
	Pools      map[string]source.Pool     `json:"pools"`
	Rendered   map[string]snapshot.Digest `json:"rendered"`
	Controller *source.ControllerConfig   `json:"controller,omitempty"`
	Bundle     string                     `json:"bundle,omitempty"`
	// Version is the resource version of the MachineConfigs up to which every rendered config is on stable storage.
	Version string `json:"version,omitempty"`
}

func (s *Source) memoryFile() string { return filepath.Join(s.cfg.State, "cluster.json") }

// remember writes down what is known, if the file says anything else.
func (s *Source) remember() {
	s.mu.Lock()
	if len(s.waiting) > 0 { // only what is complete is worth remembering
		s.mu.Unlock()
		return
	}
	m := memory{Pools: s.pools, Rendered: map[string]snapshot.Digest{}, Controller: s.controller, Bundle: string(s.bundle)}
	for _, pool := range s.pools {
		for _, name := range []string{pool.Spec, pool.Status} {
			if config, exists := s.live[name]; exists {
				m.Rendered[name] = config.digest
			}
		}
	}
	if !s.unstored() { // else the older version: from there they can be captured again
		s.safe = s.version
	}
	m.Version = s.safe
	text, err := json.Marshal(m)
	same := bytes.Equal(text, s.remembered)
	s.mu.Unlock()
	if err == nil && !same {
		err = durable.WriteFile(s.memoryFile(), append(text, '\n'), 0o600)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.remembered, s.forgetful = text, false
	case !s.forgetful:
		s.forgetful = true
		s.log.Error("what the cluster says cannot be remembered for a restart", "file", s.memoryFile(), "error", err)
	}
}

// unstored tells whether some config may be in memory only, or not read yet: the version stays where it is, so that the
// next process reads it again. Callers hold s.mu.
func (s *Source) unstored() bool {
	if s.catching {
		return true
	}
	// Asked of the store and not of what exists: a config may be deleted while it waits for the disk.
	if held, is := s.cfg.Store.(interface{ Problem() (string, int) }); is {
		_, waiting := held.Problem()
		return waiting > 0
	}
	return false
}

// recall reads what was remembered, or makes it up from the store: each pool that was ever answered, with what it was
// answered with.
func (s *Source) recall(ctx context.Context) *memory {
	text, err := os.ReadFile(s.memoryFile())
	var m memory
	if err == nil {
		if err = json.Unmarshal(text, &m); err == nil && len(m.Pools) > 0 {
			return &m
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("what the cluster said last cannot be read; the store's own notes are used", "file", s.memoryFile(), "error", err)
	}
	m = memory{Pools: map[string]source.Pool{}, Rendered: map[string]snapshot.Digest{}}
	entries, err := s.cfg.Store.Entries(ctx)
	if err != nil {
		s.log.Warn("the store cannot be listed", "error", err)
	}
	for _, e := range entries {
		for _, pool := range e.SelectedBy {
			m.Pools[pool] = source.Pool{Name: pool, Spec: e.Name, Status: e.Name}
			m.Rendered[e.Name] = e.Digest
		}
	}
	if len(m.Pools) == 0 {
		return nil
	}
	return &m
}

// resume takes what is remembered for what is, where the cluster has not said otherwise yet.
func (s *Source) resume(m *memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[kindPools] {
		for name, pool := range m.Pools {
			if _, known := s.pools[name]; !known {
				s.pools[name] = pool
			}
		}
	}
	if s.waiting[kindConfigs] {
		for name, digest := range m.Rendered {
			if _, known := s.live[name]; !known {
				s.live[name] = live{digest: digest}
			}
		}
	}
	if s.controller == nil {
		s.controller = m.Controller
	}
	if s.waiting[kindBundle] && len(s.bundle) == 0 {
		s.bundle = []byte(m.Bundle)
	}
}

// catchUp captures what was rendered and deleted again while no server was running: the API server still has the events
// for some minutes. It looks at nothing that exists, which the watch brings anyway.
func (s *Source) catchUp(ctx context.Context, version string) {
	for s.stillWaiting(kindConfigs) {
		if wait(ctx, 50*time.Millisecond); ctx.Err() != nil {
			return
		}
	}
	reading, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	quiet := time.AfterFunc(catchUpQuiet, cancel)
	defer quiet.Stop()
	w := &watcher{
		api: s.api, at: "/apis/machineconfiguration.openshift.io/v1/machineconfigs", log: s.log, connected: func(error) {},
		follower: lateFollower{s, func() { quiet.Reset(catchUpQuiet) }},
	}
	_, err := w.stream(reading, url.Values{"resourceVersion": {version}}, nil)
	switch {
	case ctx.Err() != nil:
		return // what was not read is read after the next start
	case isGone(err):
		s.log.Warn("configs that were rendered and deleted again while no server ran may be missing: the API server no longer has the events", "since", version)
	case err != nil && reading.Err() == nil:
		s.log.Warn("the events while no server ran were not read to their end", "since", version, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catching = false
}

const (
	// catchUpQuiet is how long nothing has to come for old events to be at their end: they come at once, and new ones are
	// no business of catchUp.
	catchUpQuiet = 3 * time.Second
	// catchUpTime is how long at most they are read.
	catchUpTime = 5 * time.Minute
)

func (s *Source) stillWaiting(kind string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting[kind]
}

// lateFollower captures configs that no longer exist.
type lateFollower struct {
	s    *Source
	read func() // called for each event
}

func (f lateFollower) observe(ctx context.Context, m meta, raw json.RawMessage) {
	defer f.read() // after the disk was waited for
	f.s.mu.Lock()
	_, exists := f.s.live[m.Metadata.Name]
	f.s.mu.Unlock()
	pool := f.s.poolOf(m)
	if exists || pool == "" {
		return
	}
	if digest, err := f.s.capture(ctx, raw, pool); err == nil {
		f.s.log.Info("captured after the fact", "rendered", m.Metadata.Name, "digest", digest)
	}
}

// gone captures the last state: the first may have come before the version that catchUp began with.
func (f lateFollower) gone(ctx context.Context, m meta, raw json.RawMessage) { f.observe(ctx, m, raw) }

func (lateFollower) complete(map[string]bool) {}
