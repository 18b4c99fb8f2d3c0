// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mcsnap/mcsnap/snapshot"
)

// Says is what the annotations of a node say.
type Says struct {
	Current  string `json:"current"`
	Desired  string `json:"desired"`
	State    State  `json:"state"`
	Reason   string `json:"reason,omitempty"`
	Snapshot string `json:"desiredSnapshot,omitempty"` // digest of the desired config, where it is given
}

// Ask reads what a node's annotations say. Of the options it needs Cluster and Name.
func Ask(ctx context.Context, options Options) (Says, error) {
	client, err := kubernetes.NewForConfig(options.Cluster)
	if err != nil {
		return Says{}, err
	}
	object, err := client.CoreV1().Nodes().Get(ctx, options.Name, metav1.GetOptions{})
	if err != nil {
		return Says{}, fmt.Errorf("node %s: %w", options.Name, err)
	}
	is := object.Annotations
	return Says{is[CurrentConfig], is[DesiredConfig], State(is[StateKey]), is[ReasonKey], is[DesiredSnapshot]}, nil
}

// Find gets a config as the running daemon does: from the node, the cluster, or by its digest, which may be "", from
// mcsnap's servers.
func Find(ctx context.Context, options Options, name, digest string) (*snapshot.Snapshot, error) {
	d := &daemon{Options: options}
	var err error
	if d.client, err = kubernetes.NewForConfig(options.Cluster); err != nil {
		return nil, err
	}
	current, err := d.Updater.Current()
	if err != nil {
		return nil, err
	}
	if current.Name() == name {
		return current, nil
	}
	found, _, err := d.find(ctx, name, digest, current)
	return found, err
}

// BootPending tells whether the node waits for the reboot that its config needs. bootID is that of this boot.
func BootPending(options Options) (bool, error) {
	current, err := options.Updater.Current()
	if err != nil {
		return false, err
	}
	pending, err := (&daemon{Options: options}).pendingBoot()
	return pending != nil && pending.Digest == current.Digest() && pending.BootID == options.BootID, err
}
