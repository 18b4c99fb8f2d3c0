// SPDX-License-Identifier: Apache-2.0

// Package report draws what happened to machines: for each story a timeline of the cluster's generations and of every
// machine, as a page with pictures and as a table. It draws what it is told and measures nothing itself.
package report

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Kind decides how a span is drawn.
type Kind string

const (
	Generation Kind = "generation" // a rendered config, from its rendering to its deletion
	Initramfs  Kind = "initramfs"  // Ignition at work
	Booting    Kind = "booting"    // from switching on until everything is started
	Server     Kind = "server"     // the server answers
)

// Span is something that lasted. One without an end goes on to the end of the story.
type Span struct {
	Lane       string // "cluster", "server", or a machine's name
	Kind       Kind
	Label      string
	Generation int // decides the colour; 0 means none
	From, To   time.Time
}

// Mark is something that happened at one moment.
type Mark struct {
	Lane, Label string
	At          time.Time
	Bad         bool // a fault that the story makes
}

// Story is one timeline. Its methods may be called from several goroutines.
type Story struct {
	Title string

	mu    sync.Mutex
	ended time.Time
	spans []*Span
	marks []Mark
}

// Begin starts a span and returns what ends it.
func (s *Story) Begin(span Span) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if span.From.IsZero() {
		span.From = time.Now()
	}
	s.spans = append(s.spans, &span)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if span.To.IsZero() {
			span.To = time.Now()
		}
	}
}

// Mark notes a moment; one without a time is now.
func (s *Story) Mark(mark Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mark.At.IsZero() {
		mark.At = time.Now()
	}
	s.marks = append(s.marks, mark)
}

// End is the right edge of the picture.
func (s *Story) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = time.Now()
}

// Report is a run.
type Report struct {
	Versions [][2]string // of every real part: name, version
	Stories  []*Story
}

// timeline is a story in seconds since its beginning, ready to be drawn.
type timeline struct {
	title   string
	seconds float64
	lanes   []lane
}

type lane struct {
	name  string
	spans []drawnSpan
	marks []drawnMark
}

type drawnSpan struct {
	Span
	from, to float64
}

type drawnMark struct {
	Mark
	at float64
}

// timeline orders lanes by their first event, the cluster and its server first.
func (s *Story) timeline() timeline {
	s.mu.Lock()
	defer s.mu.Unlock()
	begin, end := s.ended, s.ended
	for _, span := range s.spans {
		begin = earlier(begin, span.From)
	}
	for _, mark := range s.marks {
		begin = earlier(begin, mark.At)
	}
	t := timeline{title: s.Title, seconds: end.Sub(begin).Seconds()}
	at := func(moment time.Time) float64 {
		if moment.IsZero() {
			moment = end
		}
		return moment.Sub(begin).Seconds()
	}
	index := map[string]int{}
	find := func(name string) *lane {
		if _, known := index[name]; !known {
			index[name] = len(t.lanes)
			t.lanes = append(t.lanes, lane{name: name})
		}
		return &t.lanes[index[name]]
	}
	for _, span := range s.spans {
		l := find(span.Lane)
		l.spans = append(l.spans, drawnSpan{*span, at(span.From), at(span.To)})
	}
	for _, mark := range s.marks {
		l := find(mark.Lane)
		l.marks = append(l.marks, drawnMark{mark, at(mark.At)})
	}
	rank := map[string]int{"cluster": -2, "server": -1}
	slices.SortStableFunc(t.lanes, func(a, b lane) int { return cmp.Compare(rank[a.name], rank[b.name]) })
	for i := range t.lanes {
		slices.SortStableFunc(t.lanes[i].marks, func(a, b drawnMark) int { return cmp.Compare(a.at, b.at) })
	}
	return t
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
