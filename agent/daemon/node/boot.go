// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/mcsnap/mcsnap/agent/daemon/change"
	"github.com/mcsnap/mcsnap/snapshot"
)

// bootPath says that a config needs a reboot, and in which boot it was applied. It is there before the config is the node's,
// so that a crash in between does not lose the reboot (field case 98).
const (
	bootPath = change.Dir + "/boot.json"
	maxBoot  = 1 << 16
)

type pendingBoot struct {
	Digest snapshot.Digest `json:"digest"`
	BootID string          `json:"bootID"`
}

func (d *daemon) expectBoot(target *snapshot.Snapshot) error {
	if d.Reboot == nil {
		return nil
	}
	text, err := json.Marshal(pendingBoot{target.Digest(), d.BootID})
	if err != nil {
		return err
	}
	return d.Updater.Node.WriteFile(bootPath, append(text, '\n'), 0o600)
}

func (d *daemon) forgetBoot() error { return d.Updater.Node.Remove(bootPath) }

// bootPending tells whether the node is still in the boot in which its config was applied.
func (d *daemon) bootPending(current *snapshot.Snapshot) (bool, error) {
	pending, err := d.pendingBoot()
	if pending == nil || err != nil {
		return false, err
	}
	if d.Reboot != nil && pending.Digest == current.Digest() && pending.BootID == d.BootID {
		return true, nil
	}
	return false, d.forgetBoot()
}

// pendingBoot is what was written down, nil when nothing was; it is of no config when it cannot be parsed.
func (d *daemon) pendingBoot() (*pendingBoot, error) {
	text, err := d.Updater.Node.ReadFile(bootPath, maxBoot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pending := &pendingBoot{}
	if json.Unmarshal(text, pending) != nil {
		return &pendingBoot{}, nil
	}
	return pending, nil
}
