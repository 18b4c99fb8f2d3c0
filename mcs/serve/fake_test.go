// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/publish"
	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// table is a fixed set of answers that tests change as a whole.
type table struct {
	mu      sync.Mutex
	answers map[string]*publish.Answer
	checks  []publish.Check
	absence publish.Absence
}

func (t *table) Answer(pool string) (*publish.Answer, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, ok := t.answers[pool]
	return a, ok
}

func (t *table) Absent(string) publish.Absence { return t.absence }

func (t *table) Checks() []publish.Check { return t.checks }

func (t *table) set(a *publish.Answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.answers == nil {
		t.answers = map[string]*publish.Answer{}
	}
	t.answers[a.Pool] = a
}

const testDigest = snapshot.Digest("sha256:1111111111111111111111111111111111111111111111111111111111111111")

// answerFor makes an answer with one small body per version.
func answerFor(pool string, own specver.Version) *publish.Answer {
	a := &publish.Answer{
		Pool: pool, Own: own, Digest: testDigest, Rendered: "rendered-" + pool,
		Bodies: map[specver.Version]*compose.Body{}, Inexpressible: map[specver.Version]error{},
	}
	for _, v := range specver.All {
		if !own.Less(v) {
			a.Bodies[v] = bodyOf(v, fmt.Sprintf(`{"ignition":{"version":%q}}`, v))
		}
	}
	return a
}

func bodyOf(v specver.Version, text string) *compose.Body {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	b := &compose.Body{Version: v, JSON: []byte(text), Gzip: zipped.Bytes()}
	b.ETag, b.ReprDigest = validators(b.JSON)
	b.GzipETag, b.GzipReprDigest = validators(b.Gzip)
	return b
}

func validators(data []byte) (etag, digest string) {
	sum := sha256.Sum256(data)
	return fmt.Sprintf(`"%x"`, sum), "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// content is a fixed set of snapshots and agents; the zero value is empty. broken makes every read fail.
type content struct {
	snapshots map[snapshot.Digest]*snapshot.Snapshot
	agents    map[string][]byte
	broken    error
}

func (c content) Get(_ context.Context, d snapshot.Digest) (*snapshot.Snapshot, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	if s := c.snapshots[d]; s != nil {
		return s, nil
	}
	return nil, store.ErrNotFound
}

func (c content) Read(_ context.Context, sum string) (raw, gz []byte, err error) {
	if c.broken != nil {
		return nil, nil, c.broken
	}
	if raw := c.agents[sum]; raw != nil {
		return raw, bodyOf(specver.Newest, string(raw)).Gzip, nil
	}
	return nil, nil, store.ErrNotFound
}

// fixture is a server under test.
type fixture struct {
	*Server
	answers  *table
	registry *prometheus.Registry
	log      *logged
	// listening changes the listener of run, nil for not at all.
	listening func(net.Listener) net.Listener
}

// logged is a log that tests read.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// lines counts the lines with all the words in them.
func (l *logged) lines(words ...string) (n int) {
	for line := range strings.Lines(l.String()) {
		has := true
		for _, word := range words {
			has = has && strings.Contains(line, word)
		}
		if has {
			n++
		}
	}
	return n
}

func newFixture(t testing.TB, change func(*Config)) *fixture {
	t.Helper()
	f := &fixture{answers: &table{absence: publish.NeverSeen}, registry: prometheus.NewRegistry(), log: &logged{}}
	f.answers.set(answerFor("worker", specver.V3_5))
	cfg := Config{
		Answers: f.answers, Snapshots: content{}, Agents: content{}, Metrics: NewMetrics(f.registry), AccessLog: true,
		Log: slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&cfg)
	}
	f.Server = New(cfg)
	return f
}

// do asks without a network. Headers are given as "Name: value".
func (f *fixture) do(method, path string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, "https://mcs:22623/", nil)
	r.URL.Path, r.URL.RawQuery, _ = strings.Cut(path, "?")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w.Result()
}

func text(t testing.TB, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// counter reads one value from the registry, by metric and label values in any order.
func (f *fixture) counter(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			has := 0
			for _, l := range m.GetLabel() {
				for _, want := range labels {
					if l.GetValue() == want {
						has++
					}
				}
			}
			if has >= len(labels) {
				total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return total
}

func checkOf(name, problem string) publish.Check { return publish.Check{Name: name, Problem: problem} }
