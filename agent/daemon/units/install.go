// SPDX-License-Identifier: Apache-2.0

// Package units knows which links enable a systemd unit, and what presets say of it: what `systemctl enable`, `disable`
// and `preset` do, as plain facts about files. The daemon makes such links itself, through its journal like every other
// file, so that a crash leaves no unit half enabled, and a scratch root needs no systemd. It starts and stops nothing.
package units

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/mcsnap/mcsnap/agent/daemon/tree"
)

// Folder is where units, drop-ins and enabling links of the administrator, of Ignition and of this daemon are.
const Folder = "/etc/systemd/system"

// Folders are where unit files are found, the first wins.
var Folders = []string{Folder, "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}

// Files is a node's files, perhaps as they are going to be.
type Files interface {
	Read(name string) (tree.State, []byte, error)
	Names(folder string) ([]string, error)
}

// install is the [Install] section of a unit and its drop-ins.
type install struct {
	file            string // path of the unit's file
	links           map[string][]string
	defaultInstance string
}

// kinds are the settings of [Install] that make a link in a folder, by that folder's suffix. UpheldBy is known from
// systemd 254 on; older ones do not look into its folders.
var kinds = map[string]string{"WantedBy": ".wants", "RequiredBy": ".requires", "UpheldBy": ".upholds"}

// Links are the links that enabling a unit makes, with their targets. A unit that does not exist, is masked or has no
// [Install] section has none.
func Links(files Files, unit string) (map[string]string, error) {
	links := map[string]string{}
	return links, addLinks(files, unit, links, map[string]bool{})
}

func addLinks(files Files, unit string, links map[string]string, seen map[string]bool) error {
	if seen[unit] || !plain(unit) {
		return nil
	}
	seen[unit] = true
	section, err := read(files, unit)
	if err != nil || section == nil {
		return err
	}
	name := unit
	if template, instance := split(unit); template != "" && instance == "" {
		if section.defaultInstance == "" {
			return nil
		}
		name = strings.Replace(template, "@", "@"+section.defaultInstance, 1)
	}
	for _, setting := range slices.Sorted(maps.Keys(section.links)) {
		for _, value := range section.links[setting] {
			value, err := specified(value, name)
			if err != nil {
				return fmt.Errorf("%s: %s in [Install]: %w", section.file, setting, err)
			}
			if !plain(value) {
				continue // systemd ignores what is no unit name
			}
			switch {
			case setting == "Also":
				if err := addLinks(files, value, links, seen); err != nil {
					return err
				}
			case setting == "Alias":
				if value != name {
					links[path.Join(Folder, value)] = section.file
				}
			default:
				links[path.Join(Folder, value+kinds[setting], name)] = section.file
			}
		}
	}
	return nil
}

// plain tells whether a value can be a unit's name: nothing may lead out of systemd's folder.
func plain(name string) bool {
	return name != "" && !strings.HasPrefix(name, ".") && !strings.ContainsAny(name, "/\x00\n ") && strings.Contains(name, ".")
}

// split gives the template and instance of a name such as getty@tty1.service; the template is "" for other units.
func split(unit string) (template, instance string) {
	before, after, is := strings.Cut(unit, "@")
	dot := strings.LastIndex(after, ".")
	if !is || dot < 0 {
		return "", ""
	}
	return before + "@" + after[dot:], after[:dot]
}

// specified puts in what systemd's specifiers stand for.
func specified(value, unit string) (string, error) {
	bare := strings.TrimSuffix(unit, path.Ext(unit))
	prefix, instance, _ := strings.Cut(bare, "@")
	var text strings.Builder
	for rest := value; rest != ""; {
		before, after, is := strings.Cut(rest, "%")
		text.WriteString(before)
		if !is {
			break
		}
		meaning, known := map[string]string{"%": "%", "i": instance, "n": unit, "N": bare, "p": prefix}[after[:min(1, len(after))]]
		if !known {
			return "", errors.New("of systemd's specifiers only %i, %n, %N and %p are known here")
		}
		text.WriteString(meaning)
		rest = after[1:]
	}
	return text.String(), nil
}

// read finds a unit's file and reads what it and its drop-ins say in [Install]. It returns nil when there is none, or it
// is masked or an alias.
func read(files Files, unit string) (*install, error) {
	names := []string{unit}
	if template, instance := split(unit); instance != "" {
		names = append(names, template)
	}
	for _, name := range names {
		for _, folder := range Folders {
			file := path.Join(folder, name)
			state, text, err := files.Read(file)
			if err != nil {
				return nil, err
			}
			if state.Kind == tree.Absent {
				continue
			}
			if state.Kind != tree.File {
				return nil, nil
			}
			section := &install{file: file, links: map[string][]string{}}
			section.take(string(text))
			return section, section.dropins(files, names)
		}
	}
	return nil, nil
}

// dropins reads the drop-ins of a unit; of those with one name the first folder's wins.
func (s *install) dropins(files Files, names []string) error {
	byName := map[string]string{}
	for _, name := range names {
		for _, folder := range Folders {
			dir := path.Join(folder, name+".d")
			entries, err := files.Names(dir)
			if err != nil {
				return err
			}
			for _, entry := range entries {
				if _, is := byName[entry]; !is && strings.HasSuffix(entry, ".conf") {
					byName[entry] = path.Join(dir, entry)
				}
			}
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(byName)) {
		state, text, err := files.Read(byName[entry])
		if err != nil {
			return err
		}
		if state.Kind == tree.File {
			s.take(string(text))
		}
	}
	return nil
}

// take reads the [Install] section of one text. Only that is looked at, and as leniently as systemd does: a parser that
// refuses a line anywhere in a unit would have the node fail where systemd does not.
func (s *install) take(text string) {
	section := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.ContainsAny(line[:1], "#;") {
			continue
		}
		if strings.HasPrefix(line, "[") {
			section = line
			continue
		}
		key, value, is := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !is || section != "[Install]" {
			continue
		}
		_, links := kinds[key]
		switch {
		case key == "DefaultInstance":
			s.defaultInstance = value
		case !links && key != "Alias" && key != "Also":
		case value == "":
			delete(s.links, key)
		default:
			s.links[key] = append(s.links[key], strings.Fields(value)...)
		}
	}
}

// Enabling lists the links that enable a unit now, whoever made them: what `systemctl disable` removes.
func Enabling(files Files, unit string) ([]string, error) {
	entries, err := files.Names(Folder)
	if err != nil {
		return nil, err
	}
	template, instance := split(unit)
	all := template != "" && instance == "" // a template stands for all its instances
	var found []string
	for _, entry := range entries {
		at := path.Join(Folder, entry)
		switch path.Ext(entry) {
		case ".wants", ".requires", ".upholds":
			links, err := files.Names(at)
			if err != nil {
				return nil, err
			}
			for _, link := range links {
				of, _ := split(link)
				if link == unit || all && of == template {
					found = append(found, path.Join(at, link))
				}
			}
		default:
			state, _, err := files.Read(at)
			if err != nil {
				return nil, err
			}
			if state.Kind == tree.Link && path.Base(state.Target) == unit && entry != unit {
				found = append(found, at)
			}
		}
	}
	return found, nil
}
