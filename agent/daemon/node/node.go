// SPDX-License-Identifier: Apache-2.0

// Package node keeps one node of a cluster at the config that its annotations ask for, and tells in them how far it is,
// word for word as OpenShift's daemon does. It acts as the kubelet, watches its own Node and, where it is missing, the one
// MachineConfig that is asked for, and never reads the one the node is at: that came with the node.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/mcsnap/mcsnap/agent/daemon/change"
	"github.com/mcsnap/mcsnap/snapshot"
)

// The annotations, as OpenShift has them, and one of ours.
const (
	CurrentConfig = "machineconfiguration.openshift.io/currentConfig"
	DesiredConfig = "machineconfiguration.openshift.io/desiredConfig"
	StateKey      = "machineconfiguration.openshift.io/state"
	ReasonKey     = "machineconfiguration.openshift.io/reason"

	// DesiredSnapshot is the digest of the desired config. Whoever sets DesiredConfig may set it too: the node can then
	// get the config from mcsnap's server when the cluster has lost it.
	DesiredSnapshot = "mcsnap/desired-snapshot"
)

// State is what a node tells of itself.
type State string

const (
	Working        State = "Working"
	Done           State = "Done"
	Degraded       State = "Degraded"
	Unreconcilable State = "Unreconcilable"
)

// Options of a daemon. Cluster, Name and Updater are required.
type Options struct {
	Cluster *rest.Config
	Name    string // of the Node
	Updater *change.Updater

	// Fetch gets a snapshot from mcsnap's servers. Nil means that there are none.
	Fetch func(ctx context.Context, digest snapshot.Digest) (*snapshot.Snapshot, error)

	// Reboot restarts the machine after an update that running programs do not notice. Nil means never.
	Reboot func(ctx context.Context) error
	BootID string

	// Every is how often the disk is compared with the config, and how often what failed is tried again. 0 means a minute.
	Every time.Duration

	// Ready is called once the node's state has been told for the first time. It may be nil.
	Ready func()
	Log   *slog.Logger
}

// daemon is a running one.
type daemon struct {
	Options
	client  kubernetes.Interface
	configs dynamic.Interface
	wake    chan struct{} // something may have changed
	told    bool

	closeNode func()  // nil while the node's own files could not be opened
	respite   respite // from the update that failed last
	missing   *watch  // of the desired config, while the cluster does not have it
}

// Run keeps the node at its desired config until the context ends. It returns an error only when the cluster's address is
// of no use: everything else, the loss of the node's own files too, is told in the annotations and tried again.
func Run(ctx context.Context, options Options) error {
	if options.Every == 0 {
		options.Every = time.Minute
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Ready == nil {
		options.Ready = func() {}
	}
	d := &daemon{Options: options, wake: make(chan struct{}, 1)}
	defer func() {
		if d.closeNode != nil {
			d.closeNode()
		}
	}()
	// An update that was cut is gone on with whether or not the cluster can be reached.
	if err := d.open(ctx); ctx.Err() == nil && err != nil {
		d.Log.Error("the node's own files are of no use yet", "problem", err)
	}
	var err error
	if d.client, err = kubernetes.NewForConfig(options.Cluster); err != nil {
		return err
	}
	if d.configs, err = dynamic.NewForConfig(options.Cluster); err != nil {
		return err
	}
	nodes := d.watchOwn(ctx)
	return d.loop(ctx, nodes)
}

// open takes the node for this process, once.
func (d *daemon) open(ctx context.Context) error {
	if d.closeNode != nil {
		return nil
	}
	resumed, closeNode, err := d.Updater.Open(ctx)
	if err != nil {
		return err
	}
	d.closeNode = closeNode
	if resumed != nil {
		d.Log.Info("an update that was cut is over", "from", resumed.From, "to", resumed.To, "back", resumed.Back, "reason", resumed.Reason)
	}
	return nil
}

// watchOwn keeps this node's own object at hand: field selectors are all that the node authorizer lets a kubelet watch.
func (d *daemon) watchOwn(ctx context.Context) cache.Store {
	selector := fields.OneTermEqualSelector("metadata.name", d.Name)
	source := cache.NewListWatchFromClient(d.client.CoreV1().RESTClient(), "nodes", metav1.NamespaceAll, selector)
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source,
		ObjectType:    &corev1.Node{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { d.poke() },
			UpdateFunc: func(any, any) { d.poke() },
		},
	})
	go informer.RunWithContext(ctx)
	return store
}

// poke has the loop look again soon. It never waits.
func (d *daemon) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// annotations is a copy of a node's: what the watch holds belongs to it.
func annotations(node *corev1.Node) map[string]string {
	is := map[string]string{}
	maps.Copy(is, node.Annotations)
	return is
}

// loop looks when something changed, and now and then.
func (d *daemon) loop(ctx context.Context, nodes cache.Store) error {
	retry := time.NewTicker(d.Every)
	defer retry.Stop()
	for {
		if object, known, err := nodes.GetByKey(d.Name); err == nil && known {
			node, is := object.(*corev1.Node)
			if !is {
				return fmt.Errorf("node %s: the watch gave a %T", d.Name, object)
			}
			if err := d.reconcile(ctx, annotations(node), node.ResourceVersion); err != nil && !errors.Is(err, context.Canceled) {
				d.Log.Warn("to be tried again", "problem", err)
			}
		}
		select {
		case <-ctx.Done():
			d.found()
			return nil
		case <-d.wake:
		case <-retry.C:
		}
	}
}
