// SPDX-License-Identifier: Apache-2.0

package units

import (
	"context"
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
)

// Manager is the running systemd of this machine, over D-Bus.
type Manager struct{ bus *dbus.Conn }

// Connect reaches the system's bus.
func Connect(ctx context.Context) (*Manager, error) {
	bus, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("reaching systemd over D-Bus: %w; is this process on the host, with its /run?", err)
	}
	return &Manager{bus}, nil
}

// Close leaves the bus.
func (m *Manager) Close() error { return m.bus.Close() }

// State asks for a unit's file state: enabled, disabled, static, masked and so on, "" for a unit without a file.
func (m *Manager) State(ctx context.Context, unit string) (string, error) {
	var state string
	err := m.systemd(ctx, "GetUnitFileState", unit).Store(&state)
	if isMissing(err) {
		return "", nil
	}
	return state, described(err, "asking for the state of "+unit)
}

// Enable makes the links of a unit's [Install] section.
func (m *Manager) Enable(ctx context.Context, unit string) error {
	return m.change(m.systemd(ctx, "EnableUnitFiles", []string{unit}, false, true), "enabling "+unit)
}

// Disable removes them.
func (m *Manager) Disable(ctx context.Context, unit string) error {
	return m.change(m.systemd(ctx, "DisableUnitFiles", []string{unit}, false), "disabling "+unit)
}

// Preset does what the preset files say of a unit.
func (m *Manager) Preset(ctx context.Context, unit string) error {
	return m.change(m.systemd(ctx, "PresetUnitFiles", []string{unit}, false, true), "presetting "+unit)
}

// Reload has systemd read its unit files again.
func (m *Manager) Reload(ctx context.Context) error {
	return described(m.systemd(ctx, "Reload").Err, "reloading systemd")
}

// Reboot asks logind, which lets inhibitors and other users have their say.
func (m *Manager) Reboot(ctx context.Context) error {
	call := m.bus.Object("org.freedesktop.login1", "/org/freedesktop/login1").CallWithContext(ctx, "org.freedesktop.login1.Manager.Reboot", 0, false)
	return described(call.Err, "rebooting through logind")
}

func (m *Manager) systemd(ctx context.Context, method string, args ...any) *dbus.Call {
	return m.bus.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").CallWithContext(ctx, "org.freedesktop.systemd1.Manager."+method, 0, args...)
}

func (m *Manager) change(call *dbus.Call, doing string) error {
	if isMissing(call.Err) {
		return nil
	}
	return described(call.Err, doing)
}

// isMissing recognises the answers for a unit that has no file.
func isMissing(err error) bool {
	answer, is := errors.AsType[dbus.Error](err)
	return is && (answer.Name == "org.freedesktop.systemd1.NoSuchUnit" || answer.Name == "org.freedesktop.DBus.Error.FileNotFound" ||
		answer.Name == "System.Error.ENOENT")
}

func described(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
