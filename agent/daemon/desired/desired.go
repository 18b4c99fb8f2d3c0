// SPDX-License-Identifier: Apache-2.0

// Package desired says what a rendered config wants on a node's disk: files with their modes and owners, units, drop-ins
// and masks, the SSH keys of core, and which units are enabled. It is a pure function of the config and the node's
// accounts, and says the same as the real Ignition does on a fresh root; what it cannot say is listed as other fields.
package desired

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/coreos/ignition/v2/config/v3_6/types"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// Ignition's own defaults and places.
const (
	unitsDir    = "/etc/systemd/system"
	defaultMode = 0o644
	coreUser    = "core"
	nowhere     = "/dev/null" // what a masked unit is a link to
)

// Entry is one path. It is a link when Link is set; otherwise it is a file with Content, after which comes Append. A file
// that is not Whole keeps the content it has on the image, and Append comes after that.
type Entry struct {
	Path    string
	Link    string
	Whole   bool
	Content []byte
	Append  []byte
	// Overwrite lets the entry take the place of a file that no config put there. Ignition refuses it otherwise.
	Overwrite bool

	Mode    *fs.FileMode // nil keeps the mode of a file that is not Whole
	UID     *int         // nil is root, or the owner of a file that is not Whole
	GID     *int
	Problem string // why this path cannot be written, "" when it can
}

// Tree is all that a config wants on disk.
type Tree struct {
	Entries map[string]Entry // by path
	Enabled map[string]bool  // by unit; a unit that is not in it is left to the presets
	Order   []string         // the units of Enabled as the config lists them
	Other   map[string]any   // by field: what only a fresh provisioning can bring about
}

// ConfigError says that a config's Ignition part is not one.
type ConfigError struct {
	Name    string // of the rendered config
	Problem string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("MachineConfig %s: spec.config is no valid Ignition config of spec 3: %s", e.Name, e.Problem)
}

// Of returns what the config of a snapshot wants on a node with these accounts.
func Of(s *snapshot.Snapshot, accounts Accounts) (*Tree, error) {
	config, report, err := v3_6.ParseCompatibleVersion(s.IgnitionConfig())
	if err != nil || report.IsFatal() {
		problem := strings.Join(strings.Fields(report.String()), " ")
		if problem == "" {
			problem = err.Error()
		}
		return nil, &ConfigError{s.Name(), problem}
	}
	tree := &Tree{Entries: map[string]Entry{}, Enabled: map[string]bool{}}
	if tree.Other, err = otherFields(s); err != nil {
		return nil, &ConfigError{s.Name(), err.Error()}
	}
	for _, file := range config.Storage.Files {
		tree.add(fileEntry(file, accounts))
	}
	for _, unit := range config.Systemd.Units {
		if !tree.addUnit(unit) {
			return nil, &ConfigError{s.Name(), "the name of a unit or of a drop-in leads out of systemd's folder"}
		}
	}
	if entry, wanted := keysEntry(config.Passwd.Users, accounts); wanted {
		tree.add(entry)
	}
	return tree, nil
}

func (t *Tree) add(entry Entry) {
	entry.Path = path.Clean(entry.Path)
	t.Entries[entry.Path] = entry
}

// addUnit tells whether the unit's names are such: Ignition checks no more than how they end.
func (t *Tree) addUnit(unit types.Unit) bool {
	mode := fs.FileMode(defaultMode)
	if strings.Contains(unit.Name, "/") {
		return false
	}
	for _, dropin := range unit.Dropins {
		if strings.Contains(dropin.Name, "/") {
			return false
		}
		if dropin.Contents != nil {
			t.add(Entry{Path: path.Join(unitsDir, unit.Name+".d", dropin.Name), Whole: true, Overwrite: true, Content: []byte(*dropin.Contents), Mode: &mode})
		}
	}
	switch {
	case unit.Mask != nil && *unit.Mask:
		t.add(Entry{Path: path.Join(unitsDir, unit.Name), Link: nowhere, Overwrite: true})
	case unit.Contents != nil && *unit.Contents != "":
		t.add(Entry{Path: path.Join(unitsDir, unit.Name), Whole: true, Overwrite: true, Content: []byte(*unit.Contents), Mode: &mode})
	}
	if unit.Enabled != nil {
		t.Enabled[unit.Name] = *unit.Enabled
		t.Order = append(t.Order, unit.Name)
	}
	return true
}

func fileEntry(file types.File, accounts Accounts) Entry {
	entry := Entry{Path: file.Path, Whole: file.Contents.Source != nil, Overwrite: file.Overwrite != nil && *file.Overwrite}
	var err error
	if entry.Whole {
		entry.Content, err = decode(file.Contents)
	}
	for _, part := range file.Append {
		if err != nil {
			break
		}
		var more []byte
		more, err = decode(part)
		entry.Append = append(entry.Append, more...)
	}
	if err == nil {
		entry.UID, err = accounts.user(file.User)
	}
	if err == nil {
		entry.GID, err = accounts.group(file.Group)
	}
	if err != nil {
		entry.Problem = err.Error()
	}
	switch {
	case file.Mode != nil:
		mode := fileMode(*file.Mode)
		entry.Mode = &mode
	case entry.Whole:
		mode := fs.FileMode(defaultMode)
		entry.Mode = &mode
	}
	return entry
}

// decode reads contents that are in the config itself and checks them against their hash.
func decode(resource types.Resource) ([]byte, error) {
	source, compression := "", ""
	if resource.Source != nil {
		source = *resource.Source
	}
	if resource.Compression != nil {
		compression = *resource.Compression
	}
	content, err := contents.Decode(source, compression, contents.MaxInflated)
	if err == contents.ErrRemote { //nolint:errorlint // returned as it is
		return nil, fmt.Errorf("its contents are at another URL, and nothing says that they will be the same there tomorrow; put them into the config")
	}
	if err != nil {
		return nil, err
	}
	if hash := resource.Verification.Hash; hash != nil && *hash != "" && !verified(content, *hash) {
		return nil, fmt.Errorf("its contents are not those of its verification.hash; render the config again")
	}
	return content, nil
}

// fileMode turns the mode of a config, with POSIX's bits, into Go's.
func fileMode(posix int) fs.FileMode {
	mode := fs.FileMode(posix & 0o777)
	for bit, special := range map[int]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if posix&bit != 0 {
			mode |= special
		}
	}
	return mode
}

// keysEntry is the file with the SSH keys of core, as Ignition writes it.
func keysEntry(users []types.PasswdUser, accounts Accounts) (Entry, bool) {
	at := slices.IndexFunc(users, func(user types.PasswdUser) bool { return user.Name == coreUser })
	if at < 0 || len(users[at].SSHAuthorizedKeys) == 0 {
		return Entry{}, false
	}
	var keys strings.Builder
	for _, key := range users[at].SSHAuthorizedKeys {
		keys.WriteString(string(key) + "\n")
	}
	mode := fs.FileMode(0o600)
	entry := Entry{Whole: true, Overwrite: true, Content: []byte(keys.String()), Mode: &mode}
	account, known := accounts.Users[coreUser]
	if !known {
		entry.Path, entry.Problem = "/home/core/.ssh/authorized_keys.d/ignition", "the node has no user core"
		return entry, true
	}
	entry.Path = path.Join(account.Home, ".ssh/authorized_keys.d/ignition")
	entry.UID, entry.GID = &account.UID, &account.GID
	return entry, true
}

// otherFields is the config less what a Tree holds. What is empty is the same as what is not there.
func otherFields(s *snapshot.Snapshot) (map[string]any, error) {
	var object struct {
		Spec map[string]any `json:"spec"`
	}
	if err := json.Unmarshal(s.MachineConfig(), &object); err != nil {
		return nil, err
	}
	config, _ := object.Spec["config"].(map[string]any)
	delete(object.Spec, "config")
	fields := map[string]any{}
	collect(fields, "spec", object.Spec)
	for _, section := range []struct{ name, handled string }{{"ignition", "version"}, {"storage", "files"}, {"systemd", "units"}} {
		inside, _ := config[section.name].(map[string]any)
		delete(inside, section.handled)
		collect(fields, "spec.config."+section.name, inside)
		delete(config, section.name)
	}
	if passwd, is := config["passwd"].(map[string]any); is {
		users, _ := passwd["users"].([]any)
		for _, user := range users {
			if account, is := user.(map[string]any); is && account["name"] == coreUser {
				delete(account, "sshAuthorizedKeys")
				delete(account, "name")
			}
		}
		collect(fields, "spec.config.passwd", passwd)
		delete(config, "passwd")
	}
	collect(fields, "spec.config", config)
	return fields, nil
}

func collect(fields map[string]any, prefix string, object map[string]any) {
	for key, value := range object {
		if value = essence(value); value != nil {
			fields[prefix+"."+key] = value
		}
	}
}

// essence is a value without what is empty in it; nil when nothing is left.
func essence(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, inner := range value {
			if inner = essence(inner); inner != nil {
				kept[key] = inner
			}
		}
		if len(kept) > 0 {
			return kept
		}
		return nil
	case []any:
		var kept []any
		for _, inner := range value {
			if inner = essence(inner); inner != nil {
				kept = append(kept, inner)
			}
		}
		if len(kept) > 0 {
			return kept
		}
		return nil
	case string:
		if value == "" {
			return nil
		}
	case bool:
		if !value {
			return nil
		}
	}
	return value
}
