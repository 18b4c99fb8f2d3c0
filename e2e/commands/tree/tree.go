// SPDX-License-Identifier: Apache-2.0

// Package tree is a program's commands and flags as data: what there is, not what it does.
package tree

import (
	"iter"
	"strings"
)

// Command is one command with those below it.
type Command struct {
	Name     string     `json:"name"`
	Use      string     `json:"use"`
	Short    string     `json:"short"`
	Long     string     `json:"long,omitempty"`
	Example  string     `json:"example,omitempty"`
	Runs     bool       `json:"runs"`
	Hidden   bool       `json:"hidden,omitempty"`
	Flags    []Flag     `json:"flags,omitempty"` // inherited ones too, by name
	Commands []*Command `json:"commands,omitempty"`
}

// Flag is one flag of a command.
type Flag struct {
	Name    string   `json:"name"`
	Short   string   `json:"short,omitempty"`
	Kind    string   `json:"kind,omitempty"` // of its value, "" for one that needs none
	Meaning string   `json:"meaning"`
	Default string   `json:"default,omitempty"`
	Alone   bool     `json:"alone,omitempty"` // may stand without a value
	Hidden  bool     `json:"hidden,omitempty"`
	Values  []string `json:"values,omitempty"` // the only ones, when there are any
	Env     string   `json:"env,omitempty"`    // the variable that may say it
	Key     string   `json:"key,omitempty"`    // its place in the file of settings
}

// Sub returns the command of that name below this one, nil when there is none.
func (c *Command) Sub(name string) *Command {
	for _, sub := range c.Commands {
		if sub.Name == name {
			return sub
		}
	}
	return nil
}

// Flag returns the flag that is written --name or -n, nil when there is none.
func (c *Command) Flag(written string) *Flag {
	for i, f := range c.Flags {
		if written == "--"+f.Name || f.Short != "" && written == "-"+f.Short {
			return &c.Flags[i]
		}
	}
	return nil
}

// All returns the command and those below it, each with its whole path ("mcs store ls").
func (c *Command) All() iter.Seq2[string, *Command] {
	return func(yield func(string, *Command) bool) { c.all(nil, yield) }
}

func (c *Command) all(above []string, yield func(string, *Command) bool) bool {
	path := append(above[:len(above):len(above)], c.Name)
	if !yield(strings.Join(path, " "), c) {
		return false
	}
	for _, sub := range c.Commands {
		if !sub.all(path, yield) {
			return false
		}
	}
	return true
}
