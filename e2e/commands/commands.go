// SPDX-License-Identifier: Apache-2.0

// Package commands knows our programs' commands and flags, asked from the programs themselves. Each is built with one file
// more than it has (go build's -overlay), in which it describes itself (package tell); so nothing of this is in what
// people run, and no list can be forgotten.
package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/mcsnap/mcsnap/e2e/commands/tree"
	"github.com/mcsnap/mcsnap/e2e/lab"
)

// Program is one of ours.
type Program struct {
	Name   string
	Folder string // of its main package
	Root   string // what makes its topmost command
}

// Programs are all of them.
var Programs = []Program{
	{"mcs", "mcs/cmd/mcs", "root()"},
	{"ignition-stub", "ignition-stub/cmd/ignition-stub", "root()"},
	{"mcsnap-agent", "agent/cmd/mcsnap-agent", "topmost()"},
	{"mcsnap-daemon", "agent/cmd/mcsnap-daemon", "topmost()"},
}

// Trees returns every program's commands.
func Trees(ctx context.Context) (all []*tree.Command, err error) {
	for _, p := range Programs {
		told, err := p.tell(ctx, "tree")
		if err != nil {
			return nil, err
		}
		root := &tree.Command{}
		if err := json.Unmarshal(told, root); err != nil {
			return nil, fmt.Errorf("the commands of %s: %w", p.Name, err)
		}
		all = append(all, root)
	}
	return all, nil
}

// Share writes the programs' man pages and completions below a folder that is laid out as share/ of a system.
func Share(ctx context.Context, folder string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	for _, p := range Programs {
		if _, err := p.tell(ctx, "share", folder); err != nil {
			return err
		}
	}
	return nil
}

// tell builds the program so that it describes itself, and lets it.
func (p Program) tell(ctx context.Context, args ...string) ([]byte, error) {
	top, err := lab.Top()
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "mcsnap-commands-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	added := filepath.Join(scratch, "describe.go")
	source := "package main\n\nimport \"github.com/mcsnap/mcsnap/e2e/commands/tell\"\n\nfunc init() { tell.Main(" + p.Root + ") }\n"
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(top, p.Folder, "describe.go"): added}})
	if err != nil {
		return nil, err
	}
	overlayFile := filepath.Join(scratch, "overlay.json")
	for name, text := range map[string][]byte{added: []byte(source), overlayFile: overlay} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			return nil, err
		}
	}
	run := exec.CommandContext(ctx, "go", append([]string{"run", "-overlay", overlayFile, "./" + p.Folder}, args...)...)
	var said bytes.Buffer
	run.Dir, run.Stderr = top, &said
	told, err := run.Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its commands: %w: %s", p.Name, err, bytes.TrimSpace(said.Bytes()))
	}
	return told, nil
}
