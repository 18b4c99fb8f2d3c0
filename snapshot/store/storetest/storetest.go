// SPDX-License-Identifier: Apache-2.0

// Package storetest is what every snapshot store has to do, as tests. An implementation runs [Run] in its own tests.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// Implementation is a store under test.
type Implementation struct {
	// Open returns a new, empty store.
	Open func(t *testing.T) store.Store
	// Reopen returns what a new process finds after the given store's process has died; nil for stores that die with it.
	Reopen func(t *testing.T, s store.Store) store.Store
	// Damage changes what is stored under a digest behind the store's back; nil where nobody can.
	Damage func(t *testing.T, s store.Store, d snapshot.Digest)
}

// Sealed makes a snapshot of a rendered config; different texts give different digests.
func Sealed(t testing.TB, name, pool, text string) *snapshot.Snapshot {
	t.Helper()
	doc := fmt.Sprintf(`{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","metadata":{"name":%q},`+
		`"spec":{"kernelType":%q,"config":{"ignition":{"version":"3.4.0"}}}}`, name, text)
	s, err := snapshot.Seal([]byte(doc), pool)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Run runs the suite.
func Run(t *testing.T, i Implementation) {
	for name, test := range map[string]func(*testing.T, Implementation){
		"empty": empty, "what is put can be got": putGet, "digests of a name": digests, "pools": pools, "served": served,
		"entries": entries, "delete": deletes, "overlays are not stored": overlays, "bad arguments": refusals,
		"damage": damage, "many at once": many, "an ended context": ended,
	} {
		t.Run(name, func(t *testing.T) { test(t, i) })
	}
}

// both runs a check on the store and, where it outlives its process, on what a new process finds.
func (i Implementation) both(t *testing.T, s store.Store, check func(store.Store, string)) store.Store {
	t.Helper()
	check(s, "")
	if i.Reopen != nil {
		s = i.Reopen(t, s)
		check(s, "reopened: ")
	}
	return s
}

func empty(t *testing.T, i Implementation) {
	i.both(t, i.Open(t), func(s store.Store, when string) {
		_, get := s.Get(t.Context(), Sealed(t, "rendered-a", "a", "x").Digest())
		_, names := s.Digests(t.Context(), "rendered-a")
		_, selected := s.Selected(t.Context(), "a")
		for _, err := range []error{get, names, selected} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%san empty store says %v", when, err)
			}
		}
		if all, err := s.Entries(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("%sEntries = %v, %v", when, all, err)
		}
	})
}

func putGet(t *testing.T, i Implementation) {
	s := i.Open(t)
	want := Sealed(t, "rendered-worker-1", "worker", strings.Repeat("large", 100_000))
	for range 3 { // storing again is no error
		must(t, s.Put(t.Context(), want))
	}
	i.both(t, s, func(s store.Store, when string) {
		got, err := s.Get(t.Context(), want.Digest())
		if err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%sGet = %v, want what was put", when, err)
		}
	})
}

func digests(t *testing.T, i Implementation) {
	s := i.Open(t)
	a, b, c := Sealed(t, "rendered-x", "x", "a"), Sealed(t, "rendered-x", "x", "b"), Sealed(t, "rendered-x", "x", "c")
	other := Sealed(t, "rendered-x-2", "x", "a")
	for _, one := range []*snapshot.Snapshot{a, b, c, other, a} { // a comes back: a config's annotation was set back
		must(t, s.Put(t.Context(), one))
	}
	s = i.both(t, s, func(s store.Store, when string) {
		got, err := s.Digests(t.Context(), "rendered-x")
		if want := []snapshot.Digest{a.Digest(), c.Digest(), b.Digest()}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%sDigests = %v, %v, want %v", when, got, err, want)
		}
	})
	must(t, s.Put(t.Context(), b)) // the order goes on after a restart
	if got, _ := s.Digests(t.Context(), "rendered-x"); len(got) != 3 || got[0] != b.Digest() {
		t.Errorf("Digests = %v, want %s first", got, b.Digest())
	}
}

func pools(t *testing.T, i Implementation) {
	s := i.Open(t)
	a, b := Sealed(t, "rendered-x", "x", "a"), Sealed(t, "rendered-x", "x", "b")
	must(t, s.Put(t.Context(), a))
	if err := s.Select(t.Context(), "x", b.Digest()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Select of what is not stored: %v", err)
	}
	must(t, s.Put(t.Context(), b))
	must(t, s.Select(t.Context(), "x", a.Digest()))
	must(t, s.Select(t.Context(), "y", a.Digest()))
	must(t, s.Select(t.Context(), "x", b.Digest()))
	i.both(t, s, func(s store.Store, when string) {
		for pool, want := range map[string]snapshot.Digest{"x": b.Digest(), "y": a.Digest()} {
			if got, err := s.Selected(t.Context(), pool); err != nil || got != want {
				t.Errorf("%sSelected(%s) = %s, %v, want %s", when, pool, got, err, want)
			}
		}
	})
}

func served(t *testing.T, i Implementation) {
	s := i.Open(t)
	a := Sealed(t, "rendered-x", "x", "a")
	at := time.Date(2026, 5, 1, 12, 0, 0, 123, time.UTC)
	must(t, s.MarkServed(t.Context(), a.Digest(), at)) // not stored: nothing to note
	must(t, s.Put(t.Context(), a))
	for _, when := range []time.Time{at, at.Add(-time.Hour), at.Add(time.Hour), at} {
		must(t, s.MarkServed(t.Context(), a.Digest(), when))
	}
	must(t, s.Put(t.Context(), a)) // does not make it unserved
	i.both(t, s, func(s store.Store, when string) {
		all, err := s.Entries(t.Context())
		if err != nil || len(all) != 1 || !all[0].ServedAt.Equal(at.Add(time.Hour)) {
			t.Errorf("%sEntries = %v, %v, want the latest time", when, all, err)
		}
	})
}

func entries(t *testing.T, i Implementation) {
	s := i.Open(t)
	begun := time.Now()
	a, b, c := Sealed(t, "rendered-b", "b", "1"), Sealed(t, "rendered-a", "a", "1"), Sealed(t, "rendered-b", "b", "2")
	for _, one := range []*snapshot.Snapshot{a, b, c} {
		must(t, s.Put(t.Context(), one))
	}
	must(t, s.Select(t.Context(), "two", c.Digest()))
	must(t, s.Select(t.Context(), "one", c.Digest()))
	i.both(t, s, func(s store.Store, when string) {
		all, err := s.Entries(t.Context())
		if err != nil || len(all) != 3 {
			t.Fatalf("%sEntries = %v, %v", when, all, err)
		}
		for n, want := range []*snapshot.Snapshot{b, c, a} {
			got := all[n]
			if got.Digest != want.Digest() || got.Name != want.Name() || got.Pool != want.Pool() || got.Size != int64(len(want.Bytes())) {
				t.Errorf("%sentry %d is %+v", when, n, got)
			}
			if got.CapturedAt.Before(begun) || got.CapturedAt.After(time.Now()) || got.First.After(got.CapturedAt) || !got.ServedAt.IsZero() {
				t.Errorf("%sentry %d has times %v, %v, %v", when, n, got.First, got.CapturedAt, got.ServedAt)
			}
		}
		if got := all[1].SelectedBy; !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("%sselected by %v", when, got)
		}
	})
}

func deletes(t *testing.T, i Implementation) {
	s := i.Open(t)
	a, b := Sealed(t, "rendered-x", "x", "a"), Sealed(t, "rendered-x", "x", "b")
	must(t, s.Put(t.Context(), a))
	must(t, s.Put(t.Context(), b))
	must(t, s.Select(t.Context(), "x", a.Digest()))
	must(t, s.MarkServed(t.Context(), a.Digest(), time.Now()))
	for range 2 {
		must(t, s.Delete(t.Context(), a.Digest()))
	}
	s = i.both(t, s, func(s store.Store, when string) {
		_, get := s.Get(t.Context(), a.Digest())
		_, selected := s.Selected(t.Context(), "x")
		if !errors.Is(get, store.ErrNotFound) || !errors.Is(selected, store.ErrNotFound) {
			t.Errorf("%sGet = %v, Selected = %v", when, get, selected)
		}
		if got, err := s.Digests(t.Context(), "rendered-x"); err != nil || !slices.Equal(got, []snapshot.Digest{b.Digest()}) {
			t.Errorf("%sDigests = %v, %v", when, got, err)
		}
	})
	must(t, s.Put(t.Context(), a)) // what comes back begins anew
	all, err := s.Entries(t.Context())
	if err != nil || len(all) != 2 || all[0].Digest != a.Digest() || !all[0].ServedAt.IsZero() || all[0].SelectedBy != nil {
		t.Errorf("put again: %+v, %v", all, err)
	}
}

func overlays(t *testing.T, i Implementation) {
	s := i.Open(t)
	pristine := Sealed(t, "rendered-x", "x", "a")
	must(t, s.Put(t.Context(), pristine.WithOverlays([]snapshot.Overlay{{Path: "/etc/ca", Reason: "ca", SHA256: "00"}})))
	got, err := s.Get(t.Context(), pristine.Digest())
	if err != nil || !bytes.Equal(got.Bytes(), pristine.Bytes()) {
		t.Errorf("Get = %v, %v, want it without overlays", got, err)
	}
}

func refusals(t *testing.T, i Implementation) {
	s := i.Open(t)
	for _, bad := range []string{"", ".", "..", "../x", "a/b", "/etc", "A", "a\x00b", strings.Repeat("a", 254)} {
		_, get := s.Get(t.Context(), snapshot.Digest("sha256:"+bad))
		_, names := s.Digests(t.Context(), bad)
		_, selected := s.Selected(t.Context(), bad)
		for n, err := range []error{
			get, names, selected, s.Select(t.Context(), bad, Sealed(t, "rendered-x", "x", "a").Digest()),
			s.Select(t.Context(), "x", snapshot.Digest(bad)), s.MarkServed(t.Context(), snapshot.Digest(bad), time.Now()),
			s.Delete(t.Context(), snapshot.Digest("sha256:"+bad)),
		} {
			if err == nil || errors.Is(err, store.ErrNotFound) {
				t.Errorf("%q, call %d: %v, want a refusal", bad, n, err)
			}
		}
	}
}

func damage(t *testing.T, i Implementation) {
	if i.Damage == nil {
		return
	}
	s := i.Open(t)
	one, other := Sealed(t, "rendered-x", "x", "a"), Sealed(t, "rendered-x", "x", "b")
	must(t, s.Put(t.Context(), one))
	must(t, s.Put(t.Context(), other))
	i.Damage(t, s, one.Digest())
	_, err := s.Get(t.Context(), one.Digest())
	if damaged, is := errors.AsType[*store.DamagedError](err); !is || damaged.Digest != one.Digest() {
		t.Errorf("Get of a damaged blob: %v", err)
	}
	if got, err := s.Get(t.Context(), one.Digest()); err == nil {
		t.Errorf("Get once more: %v, want an error", got.Digest())
	}
	if got, err := s.Digests(t.Context(), "rendered-x"); err != nil || !slices.Equal(got, []snapshot.Digest{other.Digest()}) {
		t.Errorf("Digests = %v, %v, want the other one", got, err)
	}
	must(t, s.Put(t.Context(), one))
	s = i.both(t, s, func(s store.Store, when string) {
		if got, err := s.Get(t.Context(), one.Digest()); err != nil || !bytes.Equal(got.Bytes(), one.Bytes()) {
			t.Errorf("%sput again, Get = %v", when, err)
		}
	})
	i.Damage(t, s, one.Digest())
	must(t, s.Put(t.Context(), one)) // what is there is compared, not trusted
	if _, err := s.Get(t.Context(), one.Digest()); err != nil {
		t.Errorf("put over damage: %v", err)
	}
}

func many(t *testing.T, i Implementation) {
	s := i.Open(t)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for m := range 10 {
				one := Sealed(t, fmt.Sprintf("rendered-x-%d", m%3), "x", fmt.Sprint(m))
				_, err := s.Digests(t.Context(), one.Name())
				if errors.Is(err, store.ErrNotFound) {
					err = nil
				}
				if err := errors.Join(err, s.Put(t.Context(), one), s.Select(t.Context(), "x", one.Digest()), s.MarkServed(t.Context(), one.Digest(), time.Now())); err != nil {
					t.Errorf("goroutine %d: %v", n, err)
				}
				got, err := s.Get(t.Context(), one.Digest())
				if err != nil || got.Digest() != one.Digest() {
					t.Errorf("goroutine %d: %v", n, err)
				}
			}
		})
	}
	all.Wait()
	if all, err := s.Entries(t.Context()); err != nil || len(all) != 10 {
		t.Errorf("%d entries, %v, want 10", len(all), err)
	}
}

func ended(t *testing.T, i Implementation) {
	s := i.Open(t)
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := s.Put(ctx, Sealed(t, "rendered-x", "x", "a")); !errors.Is(err, context.Canceled) {
		t.Errorf("Put = %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
