// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/mcsnap/mcsnap/snapshot"
)

const machineConfigs = "/apis/machineconfiguration.openshift.io/v1/machineconfigs"

// find gets the desired config: from the node's own snapshot when it is the one of its birth, else from the cluster, else,
// by its digest, from mcsnap's server. gone tells whether the cluster does not have it. The error says what was tried.
func (d *daemon) find(ctx context.Context, name, digest string, current *snapshot.Snapshot) (found *snapshot.Snapshot, gone bool, err error) {
	if born := d.born(); born != nil && born.Name() == name {
		return born, false, nil
	}
	found, err = d.fromCluster(ctx, name, current.Pool())
	if err == nil {
		return found, false, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, false, fmt.Errorf("MachineConfig %s: %w", name, err)
	}
	found, err = d.fetched(ctx, name, digest)
	return found, true, err
}

// fetched gets a config that the cluster does not have from mcsnap's server.
func (d *daemon) fetched(ctx context.Context, name, digest string) (*snapshot.Snapshot, error) {
	switch {
	case digest == "":
		return nil, fmt.Errorf("MachineConfig %s is not in the cluster, and no annotation %s names its digest for mcsnap's server; desire another config, or create it again", name, DesiredSnapshot)
	case d.Fetch == nil:
		return nil, fmt.Errorf("MachineConfig %s is not in the cluster, and this node knows no mcsnap server to ask for %s; desire another config, or create it again", name, digest)
	}
	wanted, err := snapshot.ParseDigest(digest)
	if err != nil {
		return nil, fmt.Errorf("MachineConfig %s is not in the cluster, and annotation %s: %w", name, DesiredSnapshot, err)
	}
	found, err := d.Fetch(ctx, wanted)
	if err != nil {
		return nil, fmt.Errorf("MachineConfig %s is not in the cluster, and could not be fetched by digest either: %w", name, err)
	}
	if found.Name() != name {
		return nil, fmt.Errorf("annotation %s names %s, which is the digest of %s and not of the desired %s", DesiredSnapshot, digest, found.Name(), name)
	}
	return found, nil
}

// born is the snapshot the node was born with, nil when it is gone: a node that has moved on does not need it.
func (d *daemon) born() *snapshot.Snapshot {
	sealed, err := d.Updater.Node.ReadFile(snapshot.Path, snapshot.MaxSealed)
	if err != nil {
		return nil
	}
	s, err := snapshot.Open(sealed)
	if err != nil {
		return nil
	}
	return s
}

// fromCluster reads a MachineConfig as the API server sends it: a typed struct would lose fields of newer clusters.
func (d *daemon) fromCluster(ctx context.Context, name, pool string) (*snapshot.Snapshot, error) {
	raw, err := d.client.Discovery().RESTClient().Get().AbsPath(machineConfigs, name).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var object struct {
		Metadata struct {
			OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	for _, owner := range object.Metadata.OwnerReferences {
		if owner.Kind == "MachineConfigPool" {
			pool = owner.Name
		}
	}
	return snapshot.Seal(raw, pool)
}

// watch waits for one MachineConfig to be created.
type watch struct {
	name   string
	cancel context.CancelFunc
}

// awaits has the loop look again when the desired config appears in the cluster.
func (d *daemon) awaits(ctx context.Context, name string) {
	if d.missing != nil && d.missing.name == name {
		return
	}
	d.found()
	watching, cancel := context.WithCancel(ctx)
	d.missing = &watch{name, cancel}
	configs := d.configs.Resource(schema.GroupVersionResource{Group: "machineconfiguration.openshift.io", Version: "v1", Resource: "machineconfigs"})
	selector := fields.OneTermEqualSelector("metadata.name", name).String()
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				options.FieldSelector = selector
				return configs.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
				options.FieldSelector = selector
				return configs.Watch(ctx, options)
			},
		},
		ObjectType: &unstructured.Unstructured{},
		Handler:    cache.ResourceEventHandlerFuncs{AddFunc: func(any) { d.poke() }},
	})
	go informer.RunWithContext(watching)
}

// found ends the wait.
func (d *daemon) found() {
	if d.missing != nil {
		d.missing.cancel()
		d.missing = nil
	}
}
