// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	ign "github.com/coreos/ignition/v2/config/v3_5/types"
	"github.com/vincent-petithory/dataurl"
)

// root is the node's root folder.
type root string

func (r root) path(name string) string { return filepath.Join(string(r), name) }

// holds checks that everything a config asks for is on the root, with its mode.
func (r root) holds(config ign.Config) error {
	var faults []error
	for _, file := range config.Storage.Files {
		url, err := dataurl.DecodeString(*file.Contents.Source)
		if err != nil {
			return fmt.Errorf("%s: %w", file.Path, err)
		}
		faults = append(faults, r.hasFile(file.Path, url.Data, fs.FileMode(*file.Mode)))
	}
	for _, unit := range config.Systemd.Units {
		at := "/etc/systemd/system/" + unit.Name
		if unit.Contents != nil {
			faults = append(faults, r.hasFile(at, []byte(*unit.Contents), 0o644))
		}
		for _, dropin := range unit.Dropins {
			faults = append(faults, r.hasFile(at+".d/"+dropin.Name, []byte(*dropin.Contents), 0o644))
		}
	}
	keys, err := os.ReadFile(r.path("home/core/.ssh/authorized_keys.d/ignition"))
	if err != nil || !bytes.Contains(keys, []byte(config.Passwd.Users[0].SSHAuthorizedKeys[0])) {
		faults = append(faults, fmt.Errorf("core's SSH key is not on the root: %w", err))
	}
	return errors.Join(faults...)
}

func (r root) hasFile(name string, text []byte, mode fs.FileMode) error {
	got, err := os.ReadFile(r.path(name))
	if err != nil {
		return err
	}
	info, err := os.Stat(r.path(name))
	switch {
	case err != nil:
		return err
	case !bytes.Equal(got, text):
		return fmt.Errorf("%s holds other bytes than were rendered", name)
	case info.Mode().Perm() != mode:
		return fmt.Errorf("%s has mode %o, want %o", name, info.Mode().Perm(), mode)
	}
	return nil
}

// state is every file of the root, with its mode and its link target or the digest of its contents.
func (r root) state() (map[string]string, error) {
	state := map[string]string{}
	err := filepath.WalkDir(string(r), func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		line := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %x", sha256.Sum256(text))
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			line += " " + target
		}
		state[name] = line
		return nil
	})
	return state, err
}

// changes names what differs between two states.
func changes(before, after map[string]string) (names []string) {
	for name, line := range before {
		if after[name] != line {
			names = append(names, name)
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}
