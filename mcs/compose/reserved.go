// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"errors"

	"github.com/mcsnap/mcsnap/snapshot"
)

// reserved are paths that a node writes for itself on its way into the cluster. A config that puts something there would
// make a machine look joined before it was born, or keep its hand-over from being written, and it would boot all the
// same: so such a config is refused before a node sees it.
var reserved = []struct{ path, meaning string }{
	{"/etc/machine-config-daemon/node-annotations.json.bak", "its presence means that the daemon has ended the node's bootstrap"},
	{"/var/lib/kubelet/pki/kubelet-client-current.pem", "its presence means that the node has joined"},
	{"/etc/machine-config-daemon/currentconfig", "the agent hands the config over in it"},
	{"/var/lib/mcsnap/handover.json", "the agent records the hand-over in it"},
}

// refuseReserved refuses a config that uses one of the reserved paths, as whatever.
func (r *rendered) refuseReserved() error {
	for _, own := range reserved {
		was, err := r.take(own.path)
		if taken, ok := errors.AsType[*snapshot.PathTakenError](err); ok {
			return r.takesReserved(taken.Path, own.meaning)
		}
		if err != nil {
			return err
		}
		if was != nil {
			return r.takesReserved(own.path, own.meaning)
		}
	}
	return nil
}

func (r *rendered) takesReserved(path, meaning string) error {
	return &InvalidConfigError{
		Config: r.snapshot.Name(), Field: "spec.config.storage",
		Reason: path + " is for the node alone, " + meaning + "; remove the path",
	}
}
