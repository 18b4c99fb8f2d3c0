// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// entry is the n-th config of pool p; a higher n is newer.
func entry(n int) store.Entry {
	return store.Entry{
		Digest: snapshot.Digest(fmt.Sprintf("sha256:%064x", n)), Name: fmt.Sprintf("rendered-p-%d", n), Pool: "p",
		CapturedAt: now.Add(time.Duration(n-1000) * time.Hour),
	}
}

func kept(verdicts []Verdict) (names []string) {
	for _, v := range verdicts {
		if v.Keep {
			names = append(names, v.Name)
		}
	}
	return names
}

// Field case 6: 60 rendered configs, one pool, three nodes on two of them, one lease, the newest two.
func TestMark(t *testing.T) {
	var entries []store.Entry
	for n := range 60 {
		entries = append(entries, entry(n))
	}
	entries[7].ServedAt = now.Add(-3 * time.Minute)
	entries[8].ServedAt = now.Add(-73 * time.Hour)
	entries[9].SelectedBy = []string{"gone"}
	entries[11].SelectedBy = []string{"p"}
	roots := Roots{Pools: map[string]bool{"p": true}, Named: map[string][]string{
		"rendered-p-20": {"pool p: spec"}, "rendered-p-19": {"pool p: status", "node a: currentConfig"},
		"rendered-p-3": {"node b: currentConfig", "node c: desiredConfig"}, "rendered-of-another-cluster": {"node d: currentConfig"},
	}, Digests: map[snapshot.Digest][]string{entries[13].Digest: {"node a: booted from it"}}}
	verdicts := Mark(entries, roots, Policy{KeepServed: 72 * time.Hour, KeepNewest: 2, Now: now})
	want := []string{"rendered-p-3", "rendered-p-7", "rendered-p-11", "rendered-p-13", "rendered-p-19", "rendered-p-20", "rendered-p-58", "rendered-p-59"}
	if got := kept(verdicts); !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	for _, v := range verdicts {
		if len(v.Reasons) == 0 {
			t.Errorf("%s has no reason", v.Name)
		}
	}
}

// Field case 5: a config that was handed out three minutes ago and that nobody names is leased, and may go after that.
func TestLease(t *testing.T) {
	e := entry(1)
	e.ServedAt = now.Add(-3 * time.Minute)
	policy := Policy{KeepServed: time.Hour, Now: now}
	v := Mark([]store.Entry{e}, Roots{}, policy)[0]
	if !v.Keep || !v.LeasedUntil.Equal(e.ServedAt.Add(time.Hour)) || !strings.Contains(v.Reasons[0], "leased until 2026-05-01T12:57:00Z") {
		t.Errorf("%+v, want it leased", v)
	}
	policy.Now = now.Add(time.Hour)
	if v := Mark([]store.Entry{e}, Roots{}, policy)[0]; v.Keep {
		t.Errorf("%+v, want it to go", v)
	}
}

// Two digests of one name are one config: both stay or both go.
func TestDigestsOfOneName(t *testing.T) {
	a, b, c := entry(1), entry(2), entry(3)
	b.Name = a.Name
	got := kept(Mark([]store.Entry{a, b, c}, Roots{}, Policy{KeepNewest: 2, Now: now}))
	if len(got) != 3 {
		t.Errorf("kept %v, want all three digests of the two names", got)
	}
}

func object(apiVersion, kind, name string, annotations map[string]any, more map[string]any) *unstructured.Unstructured {
	o := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "annotations": annotations}}
	for key, value := range more {
		o[key] = value
	}
	return &unstructured.Unstructured{Object: o}
}

// Roots come from pools and nodes; if either cannot be read there are none.
func TestRead(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	configuration := func(name string) map[string]any {
		return map[string]any{"configuration": map[string]any{"name": name}}
	}
	objects := []runtime.Object{
		object("machineconfiguration.openshift.io/v1", "MachineConfigPool", "p", nil, map[string]any{"spec": configuration("new"), "status": configuration("old")}),
		object("machineconfiguration.openshift.io/v1", "MachineConfigPool", "empty", nil, nil),
		object("v1", "Node", "n", map[string]any{
			annotationGroup + "currentConfig": "current", annotationGroup + "desiredConfig": "new", birthAnnotation: digest,
		}, nil),
	}
	kinds := map[schema.GroupVersionResource]string{poolsResource: "MachineConfigPoolList", nodesResource: "NodeList"}
	roots, err := Read(t.Context(), fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"new": {"pool p: spec", "node n: desiredConfig"}, "old": {"pool p: status"}, "current": {"node n: currentConfig"},
	} {
		if !slices.Equal(roots.Named[name], want) {
			t.Errorf("%s is named by %v, want %v", name, roots.Named[name], want)
		}
	}
	if !roots.Pools["empty"] || len(roots.Digests[snapshot.Digest(digest)]) != 1 {
		t.Errorf("roots %+v", roots)
	}
	for _, unreadable := range []string{"nodes", "machineconfigpools"} {
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
		client.PrependReactor("list", unreadable, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("forbidden")
		})
		if _, err := Read(context.Background(), client); err == nil {
			t.Errorf("%s cannot be read, which went unnoticed", unreadable)
		}
	}
}
