// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"net/url"
	"strings"
	"time"
)

// source is one URL of a request and what is known of it so far.
type source struct {
	url   *url.URL
	shown string

	last    *Trouble
	inARow  int // how many answers of the kinds that get a few tries, without another kind between
	ended   bool
	partial []byte // the beginning of a body that was cut
	etag    string // the strong ETag of partial
	resumed int
}

func newSources(r Request) ([]*source, error) {
	if len(r.URLs) == 0 {
		return nil, &InputError{"url", "none given; name where the document is"}
	}
	if r.Digest != "" {
		if _, _, err := parseDigest(r.Digest); err != nil {
			return nil, err
		}
	}
	var sources []*source
	for _, text := range r.URLs {
		u, err := parseURL(text)
		if err != nil {
			return nil, err
		}
		sources = append(sources, &source{url: u, shown: bare(u)})
	}
	return sources, nil
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		// The parser quotes the whole URL, which may hold a password.
		return nil, &InputError{"url", "not a URL; an IPv6 address stands in brackets, like https://[fd00::1]:22623"}
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, &InputError{"url " + bare(u), "scheme " + strings.TrimSpace(u.Scheme) + ": want https or http"}
	case u.Hostname() == "":
		return nil, &InputError{"url " + bare(u), "no host in it"}
	}
	return u, nil
}

// note takes down a trouble and decides whether this URL is asked again.
func (s *source) note(t *Trouble, tries int) {
	s.last = t
	switch t.Kind.patience() {
	case notAgain:
		s.ended = true
	case fewTries:
		s.inARow++
		s.ended = s.inARow >= tries
	case untilDeadline:
		s.inARow = 0
	}
}

// interrupted takes down a trouble that comes from the end of the time. An earlier, real one says more.
func (s *source) interrupted(t *Trouble) {
	if s.last == nil {
		s.last = t
	}
}

func allEnded(sources []*source) bool {
	for _, s := range sources {
		if !s.ended {
			return false
		}
	}
	return true
}

// pause is how long to wait after a round: a random time that grows with the rounds ("full jitter", so that machines
// powered on together drift apart), or what the servers ask for, capped, whichever is longer.
func (f *Fetcher) pause(sources []*source, round int) time.Duration {
	limit := f.o.BackoffMin
	for ; round > 0 && limit < f.o.BackoffMax; round-- {
		limit *= 2
	}
	wait := time.Duration(f.o.Random() * float64(min(limit, f.o.BackoffMax)))
	asked := time.Duration(-1)
	for _, s := range sources {
		if !s.ended && s.last != nil && (asked < 0 || s.last.after < asked) {
			asked = s.last.after
		}
	}
	if asked <= 0 {
		return wait
	}
	// Those who were told the same second do not come in the same one.
	asked = min(asked, f.o.RetryAfterMax)
	return max(wait, asked+time.Duration(f.o.Random()*float64(asked)/4))
}
