// SPDX-License-Identifier: Apache-2.0

// Package wanted reads what a rendered config wants of a node, and tells which of two configs' differences nobody can
// apply to a node that is up. It is pure: it knows the text of configs and no disk.
package wanted

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/coreos/ignition/v2/config/util"
	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/coreos/ignition/v2/config/v3_6/types"

	"github.com/mcsnap/mcsnap/snapshot"
)

// Config is what a rendered config wants of a node.
type Config struct {
	Name  string
	Files map[string]File // by path
	Units map[string]Unit // by name
	Keys  []string        // SSH keys of the account core

	rest map[string]string // everything else: field → canonical JSON, without what is empty
}

// File is one entry of storage.files.
type File struct {
	Path      string
	Contents  *Resource // nil: what is there stays, an empty file is made where nothing is
	Append    []Resource
	Mode      *fs.FileMode // nil: the mode of what is there stays, else 0644
	User      Account
	Group     Account
	Overwrite bool
}

// Account is a user or group: a name wins over nothing, an id over a name. The zero value keeps what is there, else root.
type Account struct {
	ID   *int
	Name string
}

// Unit is one entry of systemd.units.
type Unit struct {
	Name     string
	Contents string            // "" leaves the unit's file alone
	Dropins  map[string]string // by name
	Enabled  *bool             // nil leaves it to the distribution's presets
	Mask     *bool
}

// Masked tells whether the unit is wanted masked.
func (u Unit) Masked() bool { return util.IsTrue(u.Mask) }

// InvalidError says that a rendered config cannot be applied by anybody: Ignition itself would refuse it.
type InvalidError struct{ Name, Field, Problem string }

func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s: %s: %s; correct the MachineConfig it was rendered from", e.Name, e.Field, e.Problem)
}

// Read reads the config of a snapshot. The error is an [InvalidError], or an [UnreconcilableError] for a config of
// Ignition's spec 2, which this daemon does not read.
func Read(s *snapshot.Snapshot) (*Config, error) {
	invalid := func(field, problem string) error { return &InvalidError{s.Name(), field, problem} }
	version, _, err := util.GetConfigVersion(s.IgnitionConfig())
	if err != nil {
		return nil, invalid("spec.config.ignition.version", "it is no version")
	}
	if version.Major != 3 {
		return nil, &UnreconcilableError{s.Name(), []string{fmt.Sprintf("spec.config.ignition.version (%s: only spec 3 is applied)", version)}}
	}
	ignition, report, err := v3_6.ParseCompatibleVersion(s.IgnitionConfig())
	if err != nil {
		field := "spec.config"
		for _, entry := range report.Entries {
			if entry.Kind.IsFatal() {
				field = strings.TrimSuffix("spec.config."+strings.TrimPrefix(entry.Context.String(), "$."), ".")
				break
			}
		}
		// Ignition's own words may quote values, which may be secret.
		return nil, invalid(field, "Ignition refuses it")
	}
	config := &Config{Name: s.Name(), Files: map[string]File{}, Units: map[string]Unit{}}
	for _, file := range ignition.Storage.Files {
		if path.Clean(file.Path) != file.Path || !path.IsAbs(file.Path) || file.Path == "/" {
			return nil, invalid(fileField(file.Path), "the path is not absolute and clean")
		}
		if _, twice := config.Files[file.Path]; twice {
			return nil, invalid(fileField(file.Path), "it is there twice")
		}
		config.Files[file.Path] = readFile(file)
	}
	for _, unit := range ignition.Systemd.Units {
		field := "spec.config.systemd.units[" + unit.Name + "]"
		if _, twice := config.Units[unit.Name]; twice {
			return nil, invalid(field, "it is there twice")
		}
		read, ok := readUnit(unit)
		if !ok {
			return nil, invalid(field, "the name of the unit or of a drop-in is none")
		}
		config.Units[unit.Name] = read
	}
	for _, user := range ignition.Passwd.Users {
		if user.Name == Core {
			for _, key := range user.SSHAuthorizedKeys {
				config.Keys = append(config.Keys, string(key))
			}
		}
	}
	config.rest, err = rest(s, ignition)
	if err != nil {
		return nil, invalid("spec", "it is no object")
	}
	return config, nil
}

// Core is the one account whose SSH keys are applied.
const Core = "core"

func fileField(path string) string { return "spec.config.storage.files[" + path + "]" }

func readFile(file types.File) File {
	read := File{Path: file.Path, User: account(file.User.ID, file.User.Name), Group: account(file.Group.ID, file.Group.Name), Overwrite: util.IsTrue(file.Overwrite)}
	if file.Mode != nil {
		mode := fileMode(*file.Mode)
		read.Mode = &mode
	}
	if file.Contents.Source != nil {
		contents := resource(file.Contents)
		read.Contents = &contents
	}
	for _, more := range file.Append {
		read.Append = append(read.Append, resource(more))
	}
	return read
}

func account(id *int, name *string) Account {
	if id == nil && name != nil {
		return Account{Name: *name}
	}
	return Account{ID: id}
}

// fileMode is Go's form of a mode as the kernel has it.
func fileMode(mode int) fs.FileMode {
	read := fs.FileMode(mode & 0o777)
	for bit, is := range map[int]fs.FileMode{syscall.S_ISUID: fs.ModeSetuid, syscall.S_ISGID: fs.ModeSetgid, syscall.S_ISVTX: fs.ModeSticky} {
		if mode&bit != 0 {
			read |= is
		}
	}
	return read
}

func readUnit(unit types.Unit) (read Unit, ok bool) {
	read = Unit{Name: unit.Name, Dropins: map[string]string{}, Enabled: unit.Enabled, Mask: unit.Mask}
	if !element(unit.Name) {
		return read, false
	}
	if unit.Contents != nil {
		read.Contents = *unit.Contents
	}
	for _, dropin := range unit.Dropins {
		if !element(dropin.Name) {
			return read, false
		}
		if dropin.Contents != nil {
			read.Dropins[dropin.Name] = *dropin.Contents
		}
	}
	return read, true
}

// element tells whether a name is one element of a path: nothing in a config may lead out of systemd's folder.
func element(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00\n")
}
