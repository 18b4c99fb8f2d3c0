// SPDX-License-Identifier: Apache-2.0

package units

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/mcsnap/mcsnap/agent/daemon/tree"
)

// IgnitionPreset is where Ignition writes which units a config enables and disables. Systemd acts on it on first boot
// only; the daemon keeps it true all the same.
const IgnitionPreset = "/etc/systemd/system-preset/20-ignition.preset"

// presetFolders are where presets are found; of files with one name the first folder's wins.
var presetFolders = []string{"/etc/systemd/system-preset", "/run/systemd/system-preset", "/usr/local/lib/systemd/system-preset", "/usr/lib/systemd/system-preset", "/lib/systemd/system-preset"}

// rule is one line of a preset file.
type rule struct {
	action    string // enable or disable
	pattern   string
	instances []string // of a template
}

func (r rule) String() string {
	return strings.Join(append([]string{r.action, r.pattern}, r.instances...), " ")
}

func parseRule(line string) (r rule, ok bool) {
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != "enable" && words[0] != "disable" {
		return rule{}, false
	}
	return rule{words[0], words[1], words[2:]}, true
}

func (r rule) matches(unit string) bool {
	if matched, err := path.Match(r.pattern, unit); err == nil && matched {
		return true
	}
	template, instance := split(unit)
	return template == r.pattern && slices.Contains(r.instances, instance)
}

// Preset tells whether the node's presets enable a unit: the first rule that matches, in the order of the files' names.
// A unit without a rule is enabled.
func Preset(files Files, unit string) (enabled bool, err error) {
	byName := map[string]string{}
	for _, folder := range presetFolders {
		entries, err := files.Names(folder)
		if err != nil {
			return false, err
		}
		for _, entry := range entries {
			if _, is := byName[entry]; !is && strings.HasSuffix(entry, ".preset") {
				byName[entry] = path.Join(folder, entry)
			}
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(byName)) {
		state, text, err := files.Read(byName[entry])
		if err != nil {
			return false, err
		}
		if state.Kind != tree.File {
			continue // a link to /dev/null switches a file of presets off
		}
		for line := range strings.Lines(string(text)) {
			if r, ok := parseRule(line); ok && r.matches(unit) {
				return r.action == "enable", nil
			}
		}
	}
	return true, nil
}

// EditPreset returns Ignition's preset file with the rules of units, by name: true enables, false disables, and nil has
// no rule. Rules of other units (mcsnap's own, of a config that was merged) stay as they are.
func EditPreset(text []byte, units map[string]*bool) []byte {
	var lines []string
	var rules []rule
	for line := range strings.Lines(string(text)) {
		r, ok := parseRule(line)
		if !ok {
			lines = append(lines, strings.TrimRight(line, "\n"))
			continue
		}
		if len(r.instances) == 0 {
			if _, ours := units[r.pattern]; !ours {
				rules = append(rules, r)
			}
			continue
		}
		r.instances = slices.DeleteFunc(r.instances, func(instance string) bool {
			_, ours := units[strings.Replace(r.pattern, "@", "@"+instance, 1)]
			return ours
		})
		if len(r.instances) > 0 {
			rules = append(rules, r)
		}
	}
	for _, unit := range slices.Sorted(maps.Keys(units)) {
		if units[unit] == nil {
			continue
		}
		r := rule{action: "disable", pattern: unit}
		if *units[unit] {
			r.action = "enable"
		}
		if template, instance := split(unit); instance != "" {
			// One rule for a template's instances: systemd takes the first that matches and looks no further.
			r.pattern, r.instances = template, []string{instance}
			if at := slices.IndexFunc(rules, func(o rule) bool { return o.action == r.action && o.pattern == r.pattern && len(o.instances) > 0 }); at >= 0 {
				rules[at].instances = append(rules[at].instances, instance)
				continue
			}
		}
		rules = append(rules, r)
	}
	for _, r := range rules {
		lines = append(lines, r.String())
	}
	if len(lines) == 0 {
		return nil
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}
