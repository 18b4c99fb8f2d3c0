// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsnap/mcsnap/mcs/publish"
	"github.com/mcsnap/mcsnap/mcs/specver"
)

const (
	configPrefix = "/config/"
	jsonType     = "application/json"
	gzipType     = "application/gzip"
)

// prepared is an Answer made ready to be sent.
type prepared struct {
	answer   *publish.Answer
	versions map[specver.Version]*preparedBody
	// asked remembers what Accept headers came to: there are few different ones, and parsing costs more than looking up.
	asked atomic.Pointer[map[string]specver.Version]
}

// preparedBody is one body in its three forms.
type preparedBody struct {
	identity *representation
	gzip     *representation // a document of its own, for stubs that say compression: gzip
	encoded  *representation // the same bytes as a transport encoding, for clients that ask for it
	served   prometheus.Counter
	version  string
}

// mostAsked bounds the memory that clients can take with Accept headers they invent.
const mostAsked = 64

func (s *Server) prepare(a *publish.Answer) *prepared {
	p := &prepared{answer: a, versions: make(map[specver.Version]*preparedBody, len(a.Bodies))}
	p.asked.Store(&map[string]specver.Version{})
	for v, body := range a.Bodies {
		more := []field{
			{"Cache-Control", noStore},
			{"Vary", []string{"Accept, Accept-Encoding"}},
			{"Mcsnap-Snapshot-Digest", []string{string(a.Digest)}},
			{"Mcsnap-Rendered-Config", []string{a.Rendered}},
		}
		if a.Fallback {
			more = append(more, field{"Mcsnap-Fallback", []string{"last-selected"}})
		}
		version := v.String()
		p.versions[v] = &preparedBody{
			identity: described(body.JSON, jsonType, body.ETag, body.ReprDigest, more...),
			gzip:     described(body.Gzip, gzipType, body.GzipETag, body.GzipReprDigest, more...),
			encoded:  described(body.Gzip, jsonType, body.GzipETag, body.GzipReprDigest, append(more, field{"Content-Encoding", []string{"gzip"}})...),
			served:   s.metrics.requests.WithLabelValues(a.Pool, version, strconv.Itoa(http.StatusOK)),
			version:  version,
		}
		s.metrics.bodyBytes.WithLabelValues(a.Pool, version, "identity").Set(float64(len(body.JSON)))
		s.metrics.bodyBytes.WithLabelValues(a.Pool, version, "gzip").Set(float64(len(body.Gzip)))
	}
	return p
}

// prepared returns what to send for an answer, made at most a few times per change.
func (s *Server) prepared(a *publish.Answer) *prepared {
	for {
		table := s.table.Load()
		if p := (*table)[a.Pool]; p != nil && p.answer == a {
			return p
		}
		next := maps.Clone(*table)
		for pool := range next {
			if _, known := s.cfg.Answers.Answer(pool); !known {
				delete(next, pool)
				s.metrics.bodyBytes.DeletePartialMatch(prometheus.Labels{"pool": pool})
			}
		}
		p := s.prepare(a)
		next[a.Pool] = p
		if s.table.CompareAndSwap(table, &next) {
			s.complaints.forget(a.Pool)
			return p
		}
	}
}

// negotiate returns the version for an Accept header.
func (s *Server) negotiate(p *prepared, accept []string) (specver.Version, error) {
	header := ""
	switch len(accept) {
	case 0:
	case 1:
		header = accept[0]
	default:
		header = strings.Join(accept, ", ")
	}
	asked := p.asked.Load()
	if v, known := (*asked)[header]; known {
		return v, nil
	}
	v, err := specver.Negotiate(header, p.answer.Own, s.cfg.DefaultSpec)
	if err == nil && len(*asked) < mostAsked {
		next := maps.Clone(*asked)
		next[strings.Clone(header)] = v
		p.asked.CompareAndSwap(asked, &next) // losing the race costs one more parse
	}
	return v, err
}

func (s *Server) config(w http.ResponseWriter, r *http.Request, e *exchange, pool string) *refusal {
	body, f := s.body(r, e, pool)
	if f != nil {
		return f
	}
	rep := body.identity
	if acceptsGzip(r.Header["Accept-Encoding"]) {
		rep = body.encoded
	}
	s.deliver(w, r, e, body, rep)
	return nil
}

func (s *Server) configGzip(w http.ResponseWriter, r *http.Request, e *exchange, pool string) *refusal {
	body, f := s.body(r, e, pool)
	if f != nil {
		return f
	}
	s.deliver(w, r, e, body, body.gzip)
	return nil
}

func (s *Server) deliver(w http.ResponseWriter, r *http.Request, e *exchange, body *preparedBody, rep *representation) {
	e.status, e.bytes = rep.send(w, r)
	if e.status == http.StatusOK {
		body.served.Inc()
	} else {
		s.metrics.count(e.pool, body.version, e.status)
	}
}

// body finds the body for a request, or says why there is none.
func (s *Server) body(r *http.Request, e *exchange, pool string) (*preparedBody, *refusal) {
	if len(s.cfg.Pools) > 0 && !slices.Contains(s.cfg.Pools, pool) {
		return nil, notNow("pool-elsewhere", fmt.Sprintf("this server answers for %s only (--pools), another one does for %s; ask again",
			strings.Join(s.cfg.Pools, ", "), pool))
	}
	answer, known := s.cfg.Answers.Answer(pool)
	switch {
	case !known:
		return nil, s.absent(pool)
	case !answer.Ready():
		return nil, notNow(answer.Code, answer.Reason)
	}
	p := s.prepared(answer)
	e.rendered, e.digest = answer.Rendered, string(answer.Digest)
	v, err := s.negotiate(p, r.Header["Accept"])
	if err != nil {
		if unacceptable, ok := errors.AsType[*specver.NotAcceptableError](err); ok {
			return nil, &refusal{http.StatusNotAcceptable, "not-acceptable", unacceptable.Error()}
		}
		return nil, notNow("not-acceptable", err.Error())
	}
	body := p.versions[v]
	if body == nil {
		why := answer.Inexpressible[v]
		if why == nil {
			why = fmt.Errorf("spec version %s is not served for this pool; ask for another", v)
		}
		return nil, notNow("inexpressible", fmt.Sprintf("%s: %v", answer.Rendered, why))
	}
	e.version = body.version
	answer.Served(e.begun.Unix())
	if answer.Fallback {
		s.metrics.fallbacks.WithLabelValues(pool).Inc()
	}
	return body, nil
}

// absent is what to say about a pool without an answer. Only one that was never seen can be refused for good.
func (s *Server) absent(pool string) *refusal {
	switch s.cfg.Answers.Absent(pool) {
	case publish.NotReadYet:
		return notNow("starting", "this server has just been started and has not read what pools there are; ask again")
	case publish.Vanished:
		return notNow("unknown-pool", fmt.Sprintf("pool %s was here and is gone; put it back, or correct the stub's URL", pool))
	}
	if s.cfg.RejectUnknownPools {
		return &refusal{http.StatusNotFound, "unknown-pool", fmt.Sprintf("there is no pool %s; correct the stub's URL", pool)}
	}
	return notNow("unknown-pool", fmt.Sprintf("there is no pool %s yet; make it, or correct the stub's URL", pool))
}

// dnsSubdomain is how Kubernetes names pools (RFC 1123).
var dnsSubdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// splitPool takes "<pool>" or "<pool>.gz" apart. A pool whose own name ends in .gz comes first. Of a longer path the last
// part that is not empty counts, as in OpenShift's server: a stub's URL may end in a slash. The pool is "" when the name
// could never be one.
func (s *Server) splitPool(rest string) (pool string, gz bool, f *refusal) {
	if s.isKnown(rest) {
		return rest, false, nil
	}
	if strings.Contains(rest, "/") {
		if rest = lastPart(rest); s.isKnown(rest) {
			return rest, false, nil
		}
	}
	pool, gz = strings.CutSuffix(rest, ".gz")
	if !s.isKnown(pool) && (len(pool) > 253 || !dnsSubdomain.MatchString(pool)) {
		return "", false, &refusal{http.StatusBadRequest, "bad-pool-name",
			"no pool can have this name: want at most 253 lower-case letters, digits, '-' and '.'; correct the stub's URL"}
	}
	return pool, gz, nil
}

// lastPart returns the last part of a path, "" when there is none or when the path climbs.
func lastPart(path string) string {
	last := ""
	for part := range strings.SplitSeq(path, "/") {
		switch part {
		case "":
		case ".", "..":
			return ""
		default:
			last = part
		}
	}
	return last
}

func (s *Server) isKnown(pool string) bool {
	_, known := s.cfg.Answers.Answer(pool)
	return known
}

// acceptsGzip reports whether a client names gzip as a transport encoding it wants. Ignition names identity.
func acceptsGzip(values []string) bool {
	for _, value := range values {
		for item := range strings.SplitSeq(value, ",") {
			coding, params, _ := strings.Cut(item, ";")
			if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
				continue
			}
			q, weighted := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
			if weight, err := strconv.ParseFloat(q, 64); !weighted || err == nil && weight > 0 {
				return true
			}
		}
	}
	return false
}
