// SPDX-License-Identifier: Apache-2.0

// Package units is systemd's manager as an update needs it: the running one over D-Bus, or the unit files of a scratch
// root through systemctl.
package units

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Offline works on the unit files below a folder.
type Offline struct{ Root string }

// State is a unit's file state below the root, "" for a unit without a file.
func (o Offline) State(ctx context.Context, unit string) (string, error) {
	out, err := exec.CommandContext(ctx, "systemctl", "--root="+o.Root, "is-enabled", unit).Output()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		return "", err
	}
	state := strings.TrimSpace(string(out)) // the exit code says no more than the state
	if state == "not-found" {
		state = ""
	}
	return state, nil
}

// Enable makes the links of a unit's [Install] section.
func (o Offline) Enable(ctx context.Context, unit string) error { return o.change(ctx, "enable", unit) }

// Disable removes them.
func (o Offline) Disable(ctx context.Context, unit string) error {
	return o.change(ctx, "disable", unit)
}

// Preset does what the preset files say of a unit.
func (o Offline) Preset(ctx context.Context, unit string) error { return o.change(ctx, "preset", unit) }

// Reload has nothing to do: no manager runs.
func (o Offline) Reload(context.Context) error { return nil }

func (o Offline) change(ctx context.Context, verb, unit string) error {
	out, err := o.systemctl(ctx, verb, unit)
	if err != nil && missing(out) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("systemctl %s %s below %s: %w: %s", verb, unit, o.Root, err, strings.Join(strings.Fields(out), " "))
	}
	return nil
}

// missing recognises the answer for a unit that has no file.
func missing(out string) bool {
	return strings.Contains(out, "does not exist") || strings.Contains(out, "No such file") || strings.Contains(out, "not found")
}

func (o Offline) systemctl(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "systemctl", append([]string{"--root=" + o.Root, "--quiet"}, args...)...).CombinedOutput()
	return string(out), err
}
