// SPDX-License-Identifier: Apache-2.0

package lister_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/lister"
)

const name = "rendered-worker-0123456789abcdef0123456789abcdef"

// The shape of the lister that openshift/client-go generates; that module is not a dependency, its shape is.
type generated interface {
	List(selector labels.Selector) (ret []*mcfgv1.MachineConfig, err error)
	Get(name string) (*mcfgv1.MachineConfig, error)
	expansion
}

type expansion interface{}

var _ generated = (*lister.Overlay)(nil)

// cluster is a lister as informers have it: a set of shared objects, without apiVersion and kind.
type cluster map[string]*mcfgv1.MachineConfig

func (c cluster) Get(name string) (*mcfgv1.MachineConfig, error) {
	if object, ok := c[name]; ok {
		return object, nil
	}
	return nil, apierrors.NewNotFound(mcfgv1.Resource("machineconfig"), name)
}

func (c cluster) List(labels.Selector) (all []*mcfgv1.MachineConfig, _ error) {
	for _, object := range c {
		all = append(all, object)
	}
	return all, nil
}

type broken struct{ cluster }

var errAway = errors.New("the API server is away")

func (broken) Get(string) (*mcfgv1.MachineConfig, error) { return nil, errAway }

func rendered(t *testing.T) (*snapshot.Snapshot, *mcfgv1.MachineConfig) {
	t.Helper()
	doc, err := os.ReadFile("../testdata/rendered-worker.yaml")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := snapshot.Seal(doc, "worker")
	if err != nil {
		t.Fatal(err)
	}
	object := &mcfgv1.MachineConfig{}
	if err := json.Unmarshal(snap.MachineConfig(), object); err != nil {
		t.Fatal(err)
	}
	object.APIVersion, object.Kind = "", ""
	object.UID, object.ResourceVersion = "live", "7"
	return snap, object
}

func overlay(t *testing.T, over lister.MachineConfigLister, snap *snapshot.Snapshot) (*lister.Overlay, *[]lister.Difference) {
	t.Helper()
	var reported []lister.Difference
	l, err := lister.New(over, snap, func(d lister.Difference) { reported = append(reported, d) })
	if err != nil {
		t.Fatal(err)
	}
	return l, &reported
}

// Field case 1: the object is gone, and the daemon's look-up by name still answers.
func TestDeletedConfigComesFromTheSnapshot(t *testing.T) {
	snap, object := rendered(t)
	l, reported := overlay(t, cluster{}, snap)
	got, err := l.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object.Spec, got.Spec); diff != "" {
		t.Errorf("another spec (-rendered +answered):\n%s", diff)
	}
	if owner := got.OwnerReferences; len(owner) != 1 || owner[0].Kind != "MachineConfigPool" || owner[0].Name != "worker" || !*owner[0].Controller {
		t.Errorf("owner references = %+v, want the pool", owner)
	}
	if len(*reported) != 0 {
		t.Errorf("reported %v, though nothing differs", *reported)
	}
	got.Spec.KernelArguments[0] = "changed by a careless caller"
	if again, _ := l.Get(name); again.Spec.KernelArguments[0] != "console=ttyS0" {
		t.Error("a caller's change reached the next caller")
	}
}

func TestTheClusterIsAskedFirst(t *testing.T) {
	snap, object := rendered(t)
	l, reported := overlay(t, cluster{name: object}, snap)
	got, err := l.Get(name)
	if err != nil || got != object {
		t.Errorf("Get = %p, %v, want the cluster's own object", got, err)
	}
	if len(*reported) != 0 {
		t.Errorf("reported %v, though unknown fields are all that differs", *reported)
	}
	if all, err := l.List(labels.Everything()); err != nil || len(all) != 1 {
		t.Errorf("List = %v, %v, want the cluster's list", all, err)
	}
}

func TestAnotherSpecOfThatNameIsReportedOnce(t *testing.T) {
	snap, object := rendered(t)
	object.Spec.KernelArguments = []string{"other"}
	l, reported := overlay(t, cluster{name: object}, snap)
	for range 3 {
		if got, err := l.Get(name); err != nil || got != object {
			t.Fatalf("Get = %v, %v, want the cluster's object", got, err)
		}
	}
	if len(*reported) != 1 {
		t.Fatalf("reported %d times, want once", len(*reported))
	}
	d := (*reported)[0]
	if d.Snapshot != snap.Digest() || d.Cluster == snap.Digest() || !strings.Contains(d.String(), string(d.Cluster)) || !strings.Contains(d.String(), string(d.Snapshot)) {
		t.Errorf("reported %v, want both digests", d)
	}
	other := object.DeepCopy()
	other.Spec.KernelArguments = []string{"yet another"}
	l2, _ := overlay(t, cluster{}, snap)
	if _, err := l2.Get(name); err != nil {
		t.Error(err)
	}
}

// Field case 12: the config was rendered at installation and never existed in the cluster, which rendered another first.
// Field case 9: the snapshot says what the machine was booted with and pins nothing: where the pool goes is the cluster's
// to say, and the snapshot's config is not among what the pool could choose.
func TestTheSnapshotPinsNothing(t *testing.T) {
	snap, object := rendered(t)
	good := object.DeepCopy()
	good.Name = "rendered-worker-00000000000000000000000000000000"
	good.Spec.KernelArguments = []string{"good"}
	l, reported := overlay(t, cluster{good.Name: good}, snap)
	if current, err := l.Get(name); err != nil || current.Name != name || current.Spec.KernelArguments[0] != "console=ttyS0" {
		t.Errorf("what the machine runs: %v, %v", current, err)
	}
	if desired, err := l.Get(good.Name); err != nil || desired != good {
		t.Errorf("where it goes: %v, %v, want the cluster's own object", desired, err)
	}
	if all, err := l.List(labels.Everything()); err != nil || len(all) != 1 || all[0] != good {
		t.Errorf("List = %v, %v, want the cluster's alone", all, err)
	}
	if len(*reported) != 0 {
		t.Errorf("reported %v, though two names are two configs", *reported)
	}
}

func TestOtherNamesAndOtherErrorsPass(t *testing.T) {
	snap, _ := rendered(t)
	l, _ := overlay(t, cluster{}, snap)
	if _, err := l.Get("rendered-worker-ffffffffffffffffffffffffffffffff"); !apierrors.IsNotFound(err) {
		t.Errorf("another name: %v, want the cluster's NotFound", err)
	}
	away, _ := overlay(t, broken{}, snap)
	if _, err := away.Get(name); !errors.Is(err, errAway) {
		t.Errorf("API away: %v, want its error: nobody said that the object is gone", err)
	}
}
