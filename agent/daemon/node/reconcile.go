// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsnap/mcsnap/agent/daemon/change"
	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/snapshot"
)

// reconcile does what the node's annotations ask for and tells the outcome. An error is one of the cluster's connection.
//
// Transitions of the state annotation:
//
//	(none)         --> Done: the node's first start
//	Done           --> Working: another config is desired, and known
//	               --> Degraded: the desired config is not to be had, a file or unit drifted, or nothing on the node says
//	                   which config it is at
//	               --> Unreconcilable: a running node cannot be brought there
//	Working        --> Done: the node is at the desired config (after the reboot, where there is one)
//	               --> Degraded: the update failed and was taken back
//	Degraded       --> Working, Done: the cause is gone
//	Unreconcilable --> Working, Done: another config is desired
func (d *daemon) reconcile(ctx context.Context, is map[string]string, version string) error {
	current, err := d.current(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return d.tell(ctx, is, map[string]string{StateKey: string(Degraded), ReasonKey: err.Error()})
	}
	desired := is[DesiredConfig]
	if desired == "" || is[CurrentConfig] == "" { // the node has just joined
		if desired == "" {
			desired = current.Name()
		}
		// Of this version of the node only: somebody may have desired a config since it was read.
		says := map[string]string{CurrentConfig: current.Name(), DesiredConfig: desired, StateKey: string(Done), ReasonKey: ""}
		if err := d.tellOf(ctx, version, is, says); err != nil {
			return err
		}
	}
	if err := d.endBootstrap(); err != nil {
		return err
	}
	if desired == current.Name() {
		d.found()
		d.respite = respite{}
		return d.atDesired(ctx, is, current)
	}
	target, gone, err := d.find(ctx, desired, is[DesiredSnapshot], current)
	if err != nil {
		if gone {
			d.awaits(ctx, desired)
		}
		return d.tell(ctx, is, map[string]string{StateKey: string(Degraded), ReasonKey: err.Error()})
	}
	d.found()
	return d.update(ctx, is, target)
}

// current is the config that the node is at. Where the node's own files do not say so any more, it is fetched by its
// digest; until that succeeds, or somebody puts the file back, the node is Degraded.
func (d *daemon) current(ctx context.Context) (*snapshot.Snapshot, error) {
	if err := d.open(ctx); err != nil {
		return nil, err
	}
	current, err := d.Updater.Current()
	if lost, is := errors.AsType[*change.LostError](err); is && d.Fetch != nil {
		current, err = d.Updater.Recover(ctx, lost, d.Fetch)
	}
	if err != nil {
		return nil, err
	}
	return current, d.Updater.Restore(current)
}

// endBootstrap renames the annotations file that Ignition wrote, which is the sign that bootstrap has ended: from now on
// the first-boot agent leaves the node alone.
func (d *daemon) endBootstrap() error {
	live, err := d.Updater.Node.Exists(handoff.AnnotationsPath)
	if err != nil || !live {
		return err
	}
	return d.Updater.Node.Rename(handoff.AnnotationsPath, handoff.BootstrappedPath)
}

// atDesired tells whether the node is at its config in deed.
func (d *daemon) atDesired(ctx context.Context, is map[string]string, current *snapshot.Snapshot) error {
	pending, err := d.bootPending(current)
	if err != nil {
		return err
	}
	if pending {
		if err := d.tell(ctx, is, map[string]string{StateKey: string(Working), ReasonKey: "rebooting into " + current.Name()}); err != nil {
			return err
		}
		return d.Reboot(ctx)
	}
	says := map[string]string{CurrentConfig: current.Name(), StateKey: string(Done), ReasonKey: ""}
	drift, err := d.Updater.Drift(ctx)
	if err != nil {
		drift = []string{err.Error()}
	}
	if len(drift) > 0 {
		says[StateKey], says[ReasonKey] = string(Degraded), "the node is not as "+current.Name()+" has it: "+strings.Join(drift, "; ")
	}
	return d.tell(ctx, is, says)
}

// update brings the node to a config.
func (d *daemon) update(ctx context.Context, is map[string]string, target *snapshot.Snapshot) error {
	if d.respite.now(target.Digest()) {
		return nil // it has said why
	}
	if State(is[StateKey]) != Unreconcilable { // what was refused before is most likely refused again
		if err := d.tell(ctx, is, map[string]string{StateKey: string(Working), ReasonKey: "updating to " + target.Name()}); err != nil {
			return err
		}
	}
	if err := d.expectBoot(target); err != nil {
		return d.tell(ctx, is, map[string]string{StateKey: string(Degraded), ReasonKey: err.Error()})
	}
	result, err := d.Updater.Update(ctx, target)
	if ctx.Err() != nil {
		return ctx.Err() // the next process goes on
	}
	if err != nil {
		state := Degraded
		if _, refused := errors.AsType[*change.UnreconcilableError](err); refused {
			state = Unreconcilable
		}
		d.respite.failed(target.Digest(), d.Every)
		d.Log.Error("not updated", "to", target.Name(), "problem", err)
		return errors.Join(d.forgetBoot(), d.tell(ctx, is, map[string]string{StateKey: string(state), ReasonKey: err.Error()}))
	}
	d.respite = respite{}
	d.Log.Info("updated", "to", target.Name(), "paths", len(result.Changed), "units", len(result.Units))
	if !result.NeedsReboot() {
		if err := d.forgetBoot(); err != nil {
			return err
		}
	}
	return d.atDesired(ctx, is, target)
}

// maxReason keeps annotations far from their limit of 256 KiB for all together.
const maxReason = 4096

// tell writes what of says the node does not say yet into its annotations, and notes it in is. It takes the rights that a
// kubelet has on its own node.
func (d *daemon) tell(ctx context.Context, is, says map[string]string) error {
	return d.tellOf(ctx, "", is, says)
}

// tellOf is tell, refused by the API server unless the node is still of the version that was read.
func (d *daemon) tellOf(ctx context.Context, version string, is, says map[string]string) error {
	changed := map[string]string{}
	for key, value := range says {
		if len(value) > maxReason {
			value = strings.ToValidUTF8(value[:maxReason], "") + "…"
		}
		if was, told := is[key]; was != value || !told {
			changed[key] = value
		}
	}
	if len(changed) > 0 {
		metadata := map[string]any{"annotations": changed}
		if version != "" {
			metadata["resourceVersion"] = version
		}
		patch, err := json.Marshal(map[string]any{"metadata": metadata})
		if err != nil {
			return err
		}
		if _, err := d.client.CoreV1().Nodes().Patch(ctx, d.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("annotating node %s: %w", d.Name, err)
		}
		for key, value := range changed {
			is[key] = value
		}
		d.Log.Info("told", "state", is[StateKey], "current", is[CurrentConfig], "desired", is[DesiredConfig], "reason", is[ReasonKey])
	}
	if !d.told {
		d.told = true
		d.Ready()
	}
	return nil
}
