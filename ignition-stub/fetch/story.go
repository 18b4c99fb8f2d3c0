// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"log/slog"
	"time"
)

// story is what is told about one Get: each phase of trouble once, with its cause, and how it ended.
type story struct {
	log      *slog.Logger
	attempts int
	told     map[string]Kind // by URL, the kind of the phase that is under way
	status   map[string]int
}

func (s *story) tell(source *source) {
	t := source.last
	if s.told == nil {
		s.told, s.status = map[string]Kind{}, map[string]int{}
	}
	if source.ended {
		s.log.Warn("will not be asked again", "url", t.URL, "trouble", string(t.Kind), "cause", t.Text, "attempt", s.attempts)
		return
	}
	if kind, met := s.told[t.URL]; met && kind == t.Kind && s.status[t.URL] == t.Status {
		return
	}
	s.told[t.URL], s.status[t.URL] = t.Kind, t.Status
	s.log.Warn("not yet, trying on", "url", t.URL, "trouble", string(t.Kind), "cause", t.Text, "attempt", s.attempts)
}

func (s *story) arrived(r *Result, elapsed time.Duration) {
	if r.Attempts == 1 {
		return
	}
	s.log.Info("arrived", "url", r.URL, "attempts", r.Attempts, "resumed", r.Resumed, "bytes", len(r.Body),
		"after", elapsed.Round(time.Millisecond).String())
}

func (s *story) gaveUp(cause error, sources []*source, elapsed time.Duration) error {
	e := &GaveUpError{Attempts: s.attempts, Elapsed: elapsed, Cause: cause}
	for _, source := range sources {
		if source.last != nil {
			e.Troubles = append(e.Troubles, source.last)
		}
	}
	return e
}
