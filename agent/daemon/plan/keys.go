// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/mcsnap/mcsnap/agent/daemon/tree"
	"github.com/mcsnap/mcsnap/agent/daemon/wanted"
	"github.com/mcsnap/mcsnap/agent/root"
)

// keys is the file with core's SSH keys, where Ignition puts it: a fragment of its own, or the one file of accounts
// whose sshd knows no fragments.
func (e *expecter) keys(config *wanted.Config) error {
	if len(config.Keys) == 0 {
		return nil
	}
	invalid := func(problem string) error {
		return &wanted.InvalidError{Name: config.Name, Field: "spec.config.passwd.users[" + wanted.Core + "].sshAuthorizedKeys", Problem: problem}
	}
	core, err := e.accounts.find("passwd", wanted.Core)
	if err != nil {
		return err
	}
	if core == nil || !path.IsAbs(core.home) {
		return invalid("this node's /etc/passwd has no account core with a home")
	}
	text := strings.TrimSuffix(strings.Join(config.Keys, "\n"), "\n") + "\n"
	w := want{
		State: tree.State{Kind: tree.File, Mode: 0o600, UID: core.uid, GID: core.gid, SHA256: tree.Sum([]byte(text))},
		data:  []byte(text), overwrite: true, home: core.home, entry: text,
	}
	single, fragment := path.Join(core.home, ".ssh/authorized_keys"), path.Join(core.home, ".ssh/authorized_keys.d/ignition")
	at, err := e.keysFile(single, fragment)
	if err != nil {
		return err
	}
	// The account may write below its home. A link there could lead root's hand to another file.
	home, err := e.facts.Root.Resolve(core.home + "/x")
	if err != nil {
		return err
	}
	place, err := e.facts.Root.Resolve(at)
	if err != nil {
		return err
	}
	if place != path.Join(path.Dir(home), strings.TrimPrefix(at, core.home)) {
		return &ConflictError{at, "a symbolic link below the home of core leads elsewhere; remove it"}
	}
	w.home = path.Join("/", path.Dir(home))
	return e.put(config, at, w)
}

// keysFile tells which of the two files is the one: the fragment, unless the keys of the config on disk are in the other.
func (e *expecter) keysFile(single, fragment string) (string, error) {
	for place, w := range e.before {
		if w.home != "" {
			if path.Base(place) == path.Base(single) {
				return single, nil
			}
			return fragment, nil
		}
	}
	is, err := tree.Look(e.facts.Root, fragment)
	if err != nil || is.Kind != tree.Absent || e.before != nil {
		return fragment, err
	}
	if is, err = tree.Look(e.facts.Root, single); err == nil && is.Kind == tree.File {
		return single, nil
	}
	return fragment, err
}

// accounts looks names up in the node's own files: not this machine's, and no network's.
type accounts struct{ node *root.Root }

type account struct {
	uid, gid int
	home     string
}

const maxAccounts = 4 << 20

// find returns nil for an account that is not there. A group has its id as gid.
func (a *accounts) find(file, name string) (*account, error) {
	for _, folder := range []string{"/etc/", "/usr/lib/"} { // the latter is where image-based systems keep their own
		text, err := a.node.ReadFile(folder+file, maxAccounts)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Split(strings.TrimSpace(line), ":")
			if fields[0] != name || len(fields) < 3 {
				continue
			}
			id, err := strconv.Atoi(fields[2])
			if err != nil {
				continue
			}
			if file == "group" {
				return &account{gid: id}, nil
			}
			if len(fields) < 6 {
				continue
			}
			if gid, err := strconv.Atoi(fields[3]); err == nil {
				return &account{uid: id, gid: gid, home: path.Clean(fields[5])}, nil
			}
		}
	}
	return nil, nil
}

// id is the number of a user ("passwd") or group, or standard when the config names none.
func (a *accounts) id(file string, of wanted.Account, standard int) (int, error) {
	switch {
	case of.ID != nil:
		return *of.ID, nil
	case of.Name == "":
		return standard, nil
	}
	found, err := a.find(file, of.Name)
	switch {
	case err != nil:
		return 0, err
	case found == nil:
		return 0, fmt.Errorf("this node's /etc/%s has no %q", file, of.Name)
	case file == "group":
		return found.gid, nil
	}
	return found.uid, nil
}
