// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Units is the part of systemd's manager that an update needs. A unit that does not exist is not enabled, and neither
// enabling nor disabling it is an error: Ignition's presets may name units that an image lacks.
type Units interface {
	// State is a unit's file state in systemd's words, "" for a unit without a file.
	State(ctx context.Context, unit string) (string, error)
	Enable(ctx context.Context, unit string) error
	Disable(ctx context.Context, unit string) error
	// Preset enables or disables a unit as the preset files say, as systemd does on a first boot.
	Preset(ctx context.Context, unit string) error
	// Reload has systemd read its unit files again.
	Reload(ctx context.Context) error
}

const unitsDir = "/etc/systemd/system"

// enablement plans which units are enabled and disabled, and the preset file that says so.
func (p *planner) enablement() error {
	names := map[string]bool{}
	for name := range p.from.Enabled {
		names[name] = true
	}
	for name := range p.to.Enabled {
		names[name] = true
	}
	for _, unit := range slices.Sorted(maps.Keys(names)) {
		change, err := p.unit(unit)
		if err != nil {
			return err
		}
		if change.Off || change.On {
			p.journal.Units = append(p.journal.Units, change)
		}
	}
	if maps.Equal(p.from.Enabled, p.to.Enabled) && len(p.journal.Units) == 0 {
		return nil
	}
	before, err := read(p.node, PresetPath)
	if err != nil {
		return err
	}
	after := State{Kind: absent}
	text, err := p.presets(before)
	if err != nil {
		return err
	}
	if text != "" {
		after = fileState([]byte(text), 0o644, 0, 0)
	}
	if !before.same(after) {
		p.journal.Actions = append(p.journal.Actions, action{PresetPath, before, after})
		return p.folders(path.Dir(PresetPath))
	}
	return nil
}

// isEnabled tells whether a unit of this state starts with the machine because of a link that was made for it.
func isEnabled(state string) bool { return state == "enabled" || state == "enabled-runtime" }

// unit plans one unit. Where its file changed, the links of its old [Install] section go before those of the new one
// come.
func (p *planner) unit(name string) (unitChange, error) {
	was, owned := p.from.Enabled[name]
	wanted, wants := p.to.Enabled[name]
	oldFile, hadFile := p.from.Entries[path.Join(unitsDir, name)]
	newFile, hasFile := p.to.Entries[path.Join(unitsDir, name)]
	masked := newFile.Link != ""
	fileChanged := hadFile != hasFile || !oldFile.Same(newFile)
	state, err := p.units.State(p.ctx, name)
	if err != nil {
		return unitChange{}, err
	}
	enabled := isEnabled(state)
	if owned == wants && was == wanted && !(fileChanged && wanted) {
		// Nothing of the config: what was enabled or disabled by hand is put right.
		return unitChange{Name: name, Was: enabled, On: !masked && p.noted.by(name, wanted, state) == enablement}, nil
	}
	gone := hadFile && !hasFile && !wants
	return unitChange{
		Name: name,
		Was:  enabled,
		Off:  enabled && (fileChanged || masked || !wants),
		On:   !masked && !gone,
	}, nil
}

// presets is the preset file as Ignition would write it on a fresh root. Ignition disables only what the image enables,
// and so a line that disables is one that stands there already or whose unit is enabled now.
func (p *planner) presets(before State) (string, error) {
	stood := map[string]bool{}
	for line := range strings.Lines(string(before.content)) {
		stood[strings.TrimSpace(line)] = true
	}
	type preset struct {
		verb, unit string
		instances  []string
	}
	byKey := map[string]*preset{}
	for _, unit := range p.to.Order {
		enabled := p.to.Enabled[unit]
		verb, suffix := "disable", "-disabled"
		if enabled {
			verb, suffix = "enable", "-enabled"
		}
		name, instance := unit, ""
		if at, dot := strings.Index(unit, "@"), strings.LastIndex(unit, "."); at >= 0 && dot > at {
			name, instance = unit[:at+1]+unit[dot:], unit[at+1:dot]
		}
		entry := byKey[name+suffix]
		if entry == nil {
			entry = &preset{verb: verb, unit: name}
			byKey[name+suffix] = entry
		}
		if name != unit {
			entry.instances = append(entry.instances, instance)
		}
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		entry := byKey[key]
		line := entry.verb + " " + strings.Join(append([]string{entry.unit}, entry.instances...), " ")
		if entry.verb == "disable" && !stood[line] {
			state, err := p.units.State(p.ctx, entry.unit)
			if err != nil {
				return "", err
			}
			if !isEnabled(state) {
				continue
			}
		}
		text.WriteString(line + "\n")
	}
	return text.String(), nil
}

// unitsOff takes the units that leave out of use, while their files are there.
func (j *journal) unitsOff(ctx context.Context, units Units) error {
	for _, unit := range j.Units {
		if unit.Off {
			if err := units.Disable(ctx, unit.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// unitsOn gives the units that changed to the presets.
func (j *journal) unitsOn(ctx context.Context, units Units) error {
	for _, unit := range j.Units {
		if unit.On {
			if err := units.Preset(ctx, unit.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// unitsBack has the units be as they were.
func (j *journal) unitsBack(ctx context.Context, units Units) error {
	for _, unit := range j.Units {
		back := units.Disable
		if unit.Was {
			back = units.Enable
		}
		if err := back(ctx, unit.Name); err != nil {
			return err
		}
	}
	return nil
}

// syncUnits has the links that systemd made and removed on stable storage: it syncs nothing itself, and without the
// journal nobody would know that they are missing.
func (u *Updater) syncUnits(j *journal) error {
	if len(j.Units) == 0 {
		return nil
	}
	at, err := u.Node.Path(unitsDir)
	if err != nil {
		return err
	}
	folder, err := os.Open(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer folder.Close() //nolint:errcheck // only opened
	return unix.Syncfs(int(folder.Fd()))
}
