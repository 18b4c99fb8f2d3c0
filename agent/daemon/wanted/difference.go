// SPDX-License-Identifier: Apache-2.0

package wanted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_6/types"

	"github.com/mcsnap/mcsnap/snapshot"
)

// UnreconcilableError lists what changed that no daemon can apply to a node that is up. Nothing has been touched.
type UnreconcilableError struct {
	Name   string   // of the config that asks for it
	Fields []string // sorted; no values
}

func (e *UnreconcilableError) Error() string {
	const shown = 20
	fields, more := e.Fields, ""
	if len(fields) > shown {
		fields, more = fields[:shown], fmt.Sprintf(" and %d more", len(fields)-shown)
	}
	return fmt.Sprintf("%s changes what cannot be applied to a node that is up: %s%s; undo the change, or provision the node again",
		e.Name, strings.Join(fields, ", "), more)
}

// The image that replaces osImageURL where the cluster builds its own.
const preBuiltAnnotation = "machineconfiguration.openshift.io/pre-built-image"

// members are the parts of an Ignition config that are looked at by name; others are compared as they stand.
var members = map[string][]string{
	"ignition": {"version", "config", "proxy", "security", "timeouts"},
	"passwd":   {"users", "groups"},
	"storage":  {"files", "directories", "disks", "filesystems", "links", "luks", "raid"},
	"systemd":  {"units"},
}

// rest is all that is not files, units and core's keys.
func rest(s *snapshot.Snapshot, config types.Config) (map[string]string, error) {
	var object struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec map[string]any `json:"spec"`
	}
	if err := decode(s.MachineConfig(), &object); err != nil {
		return nil, err
	}
	left := map[string]string{}
	add := func(field string, value any) error {
		text, err := canonical(value)
		if err == nil && text != "" {
			left[field] = text
		}
		return err
	}
	fields := map[string]any{
		"metadata.annotations[" + preBuiltAnnotation + "]": object.Metadata.Annotations[preBuiltAnnotation],
		"spec.config.ignition.config":                      config.Ignition.Config,
		"spec.config.ignition.proxy":                       config.Ignition.Proxy,
		"spec.config.ignition.security":                    config.Ignition.Security,
		"spec.config.ignition.timeouts":                    config.Ignition.Timeouts,
		"spec.config.kernelArguments":                      config.KernelArguments,
	}
	for key, value := range object.Spec {
		if key != "config" {
			fields["spec."+key] = value
		}
	}
	storage := func(kind, name string, value any) { fields["spec.config.storage."+kind+"["+name+"]"] = value }
	for _, d := range config.Storage.Directories {
		storage("directories", d.Path, d)
	}
	for _, l := range config.Storage.Links {
		storage("links", l.Path, l)
	}
	for _, d := range config.Storage.Disks {
		storage("disks", d.Device, d)
	}
	for _, f := range config.Storage.Filesystems {
		storage("filesystems", f.Device, f)
	}
	for _, l := range config.Storage.Luks {
		storage("luks", l.Name, l)
	}
	for _, r := range config.Storage.Raid {
		storage("raid", r.Name, r)
	}
	for _, group := range config.Passwd.Groups {
		fields["spec.config.passwd.groups["+group.Name+"]"] = group
	}
	for _, user := range config.Passwd.Users {
		field := "spec.config.passwd.users[" + user.Name + "]"
		if user.Name == Core {
			user.SSHAuthorizedKeys, user.Name = nil, "" // an entry of nothing but keys is as good as none
		}
		fields[field] = user
	}
	unknown, err := unknownFields(s.IgnitionConfig())
	if err != nil {
		return nil, err
	}
	maps.Copy(fields, unknown)
	for field, value := range fields {
		if err := add(field, value); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// unknownFields are the parts of a config that only a newer Ignition knows. What cannot be read is not ignored.
func unknownFields(ignition []byte) (map[string]any, error) {
	var config map[string]any
	if err := decode(ignition, &config); err != nil {
		return nil, err
	}
	unknown := map[string]any{}
	for section, value := range config {
		known, is := members[section]
		parts, object := value.(map[string]any)
		switch {
		case section == "kernelArguments":
		case !is || !object:
			unknown["spec.config."+section] = value
		default:
			for part := range parts {
				if !slices.Contains(known, part) {
					unknown["spec.config."+section+"."+part] = parts[part]
				}
			}
		}
	}
	return unknown, nil
}

func decode(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// canonical is a value's JSON without what is empty, "" for a value that is empty itself.
func canonical(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	var plain any
	if err := decode(text, &plain); err != nil {
		return "", err
	}
	if plain = prune(plain); plain == nil {
		return "", nil
	}
	text, err = json.Marshal(plain)
	return string(text), err
}

// prune drops what means the same as its absence: null, false, "", and objects and arrays of nothing.
func prune(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if member = prune(member); member == nil {
				delete(v, key)
			} else {
				v[key] = member
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	}
	return value
}

// reserved are the files by which mcsnap itself finds its way; no config may take them over on a node that is up.
var reserved = []string{
	snapshot.Path,
	"/etc/machine-config-daemon/currentconfig",
	"/etc/machine-config-daemon/node-annotations.json",
	"/etc/machine-config-daemon/node-annotations.json.bak",
	"/etc/systemd/system-preset/20-ignition.preset",
	"/var/lib/mcsnap",
}

// Check returns an [UnreconcilableError] that lists everything which changes from old to new and which is neither a
// file, nor a unit, nor one of core's SSH keys; nil when there is nothing of the kind.
func Check(old, new *Config) error {
	var fields []string
	for _, field := range slices.Sorted(maps.Keys(both(old.rest, new.rest))) {
		if old.rest[field] != new.rest[field] {
			fields = append(fields, field)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(new.Files)) {
		file := new.Files[at]
		if was, is := old.Files[at]; is && reflect.DeepEqual(was, file) {
			continue
		}
		switch {
		case file.Remote():
			fields = append(fields, fileField(at)+" (a remote source: only contents within the config are applied)")
		case Reserved(at):
			fields = append(fields, fileField(at)+" (mcsnap's own)")
		}
	}
	if len(fields) == 0 {
		return nil
	}
	slices.Sort(fields)
	return &UnreconcilableError{new.Name, fields}
}

// Reserved tells whether a path is mcsnap's own or below one that is.
func Reserved(at string) bool {
	for dir := at; dir != "/" && dir != "."; dir = path.Dir(dir) {
		if slices.Contains(reserved, dir) {
			return true
		}
	}
	return false
}

func both(a, b map[string]string) map[string]bool {
	keys := map[string]bool{}
	for _, m := range []map[string]string{a, b} {
		for key := range m {
			keys[key] = true
		}
	}
	return keys
}
