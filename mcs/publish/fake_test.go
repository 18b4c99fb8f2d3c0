// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// faulty is a store that fails where a test says so.
type faulty struct {
	store.Store
	get, choose error
	held        snapshot.Digest // kept in memory only
}

func (f *faulty) Holds(d snapshot.Digest) bool { return d == f.held }

func (f *faulty) Get(ctx context.Context, d snapshot.Digest) (*snapshot.Snapshot, error) {
	if f.get != nil {
		return nil, f.get
	}
	return f.Store.Get(ctx, d)
}

func (f *faulty) Select(ctx context.Context, pool string, d snapshot.Digest) error {
	if f.choose != nil {
		return f.choose
	}
	return f.Store.Select(ctx, pool, d)
}

func name(letter string) string { return "rendered-worker-" + strings.Repeat(letter, 32) }

// sealed makes a snapshot of pool worker whose name and content follow from a letter.
func sealed(t testing.TB, letter string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Seal(fmt.Appendf(nil, `{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig",
		"metadata":{"name":%q},"spec":{"config":{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/%s"}]}}}}`, name(letter), letter), "worker")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bench is a publisher under test.
type bench struct {
	*Publisher
	t        *testing.T
	store    *faulty
	log      bytes.Buffer
	composed int
	refuse   func(compose.Inputs, specver.Version) error
	now      time.Time
	registry *prometheus.Registry
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, store: &faulty{Store: store.NewMemory()}, now: time.Unix(1_800_000_000, 0), registry: prometheus.NewRegistry()}
	b.Publisher = New(Config{
		Store: b.store, Log: slog.New(slog.NewTextHandler(&b.log, nil)), Registry: b.registry,
		Now: func() time.Time { return b.now },
		Compose: func(in compose.Inputs, v specver.Version) (*compose.Body, error) {
			b.composed++
			if b.refuse != nil {
				if err := b.refuse(in, v); err != nil {
					return nil, err
				}
			}
			return &compose.Body{Version: v, JSON: fmt.Appendf(nil, "%s %s %s", in.Snapshot.Name(), v, in.Kubeconfig), Gzip: []byte("gz")}, nil
		},
	})
	return b
}

func (b *bench) capture(letters ...string) {
	b.t.Helper()
	for _, letter := range letters {
		if err := b.store.Put(context.Background(), sealed(b.t, letter)); err != nil {
			b.t.Fatal(err)
		}
	}
}

// worker publishes a view with one pool.
func (b *bench) worker(spec, status string, updated int32, change ...func(*source.View)) *Answer {
	b.t.Helper()
	named := func(letter string) string {
		if letter == "" {
			return ""
		}
		return name(letter)
	}
	view := &source.View{Pools: map[string]source.Pool{
		"worker": {Name: "worker", Spec: named(spec), Status: named(status), Updated: updated},
	}}
	for _, c := range change {
		c(view)
	}
	b.Update(context.Background(), view)
	a, ok := b.Answer("worker")
	if !ok {
		b.t.Fatal("the pool is not in the table")
	}
	return a
}

func (b *bench) said(words ...string) (lines int) {
	for line := range strings.Lines(b.log.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			lines++
		}
	}
	return lines
}

// cfgWithout is the bench's configuration for another publisher, whose metrics are its own.
func (b *bench) cfgWithout() Config {
	cfg := b.cfg
	cfg.Registry = nil
	return cfg
}

var errDisk = errors.New("input/output error")
