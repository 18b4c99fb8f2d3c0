// SPDX-License-Identifier: Apache-2.0

// Package lister makes a node's daemon survive the deletion of the MachineConfig that it booted from: a lister that
// asks the cluster first and answers from the node's snapshot when the cluster has forgotten the object.
//
// It is the one line a daemon needs. For OpenShift's, around the lister it was given:
//
//	dn.mcLister = lister.New(dn.mcLister, snap, report)
//
// It caches nothing, watches nothing, and knows exactly one config: that of the snapshot.
package lister

import (
	"encoding/json"
	"fmt"
	"sync"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mcsnap/mcsnap/snapshot"
)

// MachineConfigLister has the method set of the lister that openshift/client-go generates for MachineConfigs, so that
// each can stand where the other is expected.
type MachineConfigLister interface {
	List(selector labels.Selector) ([]*mcfgv1.MachineConfig, error)
	Get(name string) (*mcfgv1.MachineConfig, error)
}

// Difference says that the cluster has an object of the snapshot's name with another spec.
type Difference struct {
	Name     string
	Snapshot snapshot.Digest
	Cluster  snapshot.Digest
}

func (d Difference) String() string {
	return fmt.Sprintf("MachineConfig %s: the cluster's object (%s) is not the one this node booted from (%s); the cluster's is used",
		d.Name, d.Cluster, d.Snapshot)
}

// Overlay is a [MachineConfigLister] over a cluster's lister and one snapshot.
type Overlay struct {
	cluster MachineConfigLister
	snap    *snapshot.Snapshot
	object  *mcfgv1.MachineConfig
	typed   *snapshot.Snapshot // object sealed again: what of the snapshot a typed struct can hold
	report  func(Difference)

	mu       sync.Mutex
	compared *mcfgv1.MachineConfig // the cluster's object that was looked at last: listers hand out the same one
	reported snapshot.Digest       // the cluster's digest that was reported last, so that one difference is said once
}

var _ MachineConfigLister = (*Overlay)(nil)

// New wraps a cluster's lister. report is called when the cluster's object of the snapshot's name has another spec,
// once for each content it has; nil means that nobody wants to know.
func New(cluster MachineConfigLister, snap *snapshot.Snapshot, report func(Difference)) (*Overlay, error) {
	exported, err := snap.Export("")
	if err != nil {
		return nil, fmt.Errorf("reading MachineConfig %s from the snapshot: %w", snap.Name(), err)
	}
	object := &mcfgv1.MachineConfig{}
	if err := json.Unmarshal(exported, object); err != nil {
		return nil, fmt.Errorf("reading MachineConfig %s from the snapshot: %w", snap.Name(), err)
	}
	typed, err := reseal(object, snap.Pool())
	if err != nil {
		return nil, fmt.Errorf("reading MachineConfig %s from the snapshot: %w", snap.Name(), err)
	}
	if report == nil {
		report = func(Difference) {}
	}
	return &Overlay{cluster: cluster, snap: snap, object: object, typed: typed, report: report}, nil
}

// List is the cluster's answer. The snapshot is not added to it: a list says what the cluster has.
func (o *Overlay) List(selector labels.Selector) ([]*mcfgv1.MachineConfig, error) {
	return o.cluster.List(selector)
}

// Get is the cluster's answer where it has one. Where it says NotFound and name is the snapshot's, it is a copy of the
// snapshot's config with the pool's ownerReference. Other errors of the cluster are passed on: an API server that
// cannot be asked has not said that the object is gone.
func (o *Overlay) Get(name string) (*mcfgv1.MachineConfig, error) {
	found, err := o.cluster.Get(name)
	switch {
	case name != o.snap.Name():
		return found, err
	case apierrors.IsNotFound(err):
		return o.object.DeepCopy(), nil
	case err == nil:
		o.compare(found)
	}
	return found, err
}

// compare reports a cluster's object that asks something else of the node than the snapshot. Both sides go through the
// typed struct, so that a field which only newer clusters know does not look like a difference.
func (o *Overlay) compare(found *mcfgv1.MachineConfig) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.compared == found {
		return
	}
	o.compared = found
	theirs, err := reseal(found, o.snap.Pool())
	if err != nil {
		return // no rendered config of any kind: the caller will find out by itself
	}
	if !snapshot.SameConfig(o.typed, theirs) && o.reported != theirs.Digest() {
		o.reported = theirs.Digest()
		o.report(Difference{Name: found.Name, Snapshot: o.snap.Digest(), Cluster: theirs.Digest()})
	}
}

// reseal seals a typed object. Listers return objects without apiVersion and kind, so they are put back.
func reseal(object *mcfgv1.MachineConfig, pool string) (*snapshot.Snapshot, error) {
	whole := object.DeepCopy()
	whole.APIVersion, whole.Kind = mcfgv1.GroupVersion.String(), "MachineConfig"
	marshalled, err := json.Marshal(whole)
	if err != nil {
		return nil, fmt.Errorf("marshalling MachineConfig %s: %w", object.Name, err)
	}
	return snapshot.Seal(marshalled, pool)
}
