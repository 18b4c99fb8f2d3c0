// SPDX-License-Identifier: Apache-2.0

// Package settings lets the flags of a program be said elsewhere than on its command line. Every flag has one variable of
// the environment and one key in a YAML file, both made from the command and the flag, so that neither is written down
// anywhere. The command line wins over the environment, the environment over the file, the file over the default.
//
// Nothing that is said is passed over: a key or a variable that no flag has, and a value of the wrong kind, end the
// program before it does anything. The package does not know what a value means; commands judge that in their PreRunE.
package settings

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Annotations of a flag that say where else it may be said. The reference is made of them.
const (
	KeyAnnotation = "mcsnap_key"
	EnvAnnotation = "mcsnap_env"

	originAnnotation = "mcsnap_origin"
)

const configFlag = "config"

// program is a command with everything below it, and the settings it has.
type program struct {
	root     *cobra.Command
	settings []*setting
	commands []*cobra.Command // those with settings
}

// setting is one key. A key at the top of the file is the flag of that name in each command that has it.
type setting struct {
	key, env string
	flags    []*pflag.Flag
}

// Bind gives every command below root its settings, and root the flag --config and the command config. Flags called as
// one of shared are at the top of the file for all commands, since they mean the same in each. What root has by then is
// what there is: call it last.
func Bind(root *cobra.Command, shared ...string) {
	p := &program{root: root}
	for _, c := range root.Commands() {
		p.bind(c, nil, shared)
	}
	root.PersistentFlags().String(configFlag, "", "YAML `file` with settings, read at start; mcs config check judges it")
	annotate(root.PersistentFlags().Lookup(configFlag), EnvAnnotation, p.variable([]string{configFlag}))
	root.AddCommand(p.command())
}

func (p *program) bind(c *cobra.Command, above, shared []string) {
	path := append(above[:len(above):len(above)], c.Name())
	c.Flags().VisitAll(func(f *pflag.Flag) {
		where := append(path[:len(path):len(path)], f.Name)
		for _, name := range shared {
			if f.Name == name {
				where = []string{name}
			}
		}
		p.add(strings.Join(where, "."), p.variable(where), f)
	})
	if c.Runnable() && c.Flags().HasFlags() {
		p.commands = append(p.commands, c)
		p.wrap(c)
	}
	for _, sub := range c.Commands() {
		p.bind(sub, path, shared)
	}
}

func (p *program) add(key, env string, f *pflag.Flag) {
	if kindOf(f) == nil {
		panic(fmt.Sprintf("flag %s is a %s, which the settings cannot read", key, f.Value.Type()))
	}
	annotate(f, KeyAnnotation, key)
	annotate(f, EnvAnnotation, env)
	for _, s := range p.settings {
		switch {
		case s.key == key && s.flags[0].Value.Type() == f.Value.Type():
			s.flags = append(s.flags, f)
			return
		case s.key == key || s.env == env:
			panic(fmt.Sprintf("%s and %s are said in the same place", s.key, key))
		}
	}
	p.settings = append(p.settings, &setting{key, env, []*pflag.Flag{f}})
}

// wrap lets a command take its settings before it judges its flags, and makes its errors tell where a flag was said.
func (p *program) wrap(c *cobra.Command) {
	judge, run := c.PreRunE, c.RunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if err := p.apply(c); err != nil || judge == nil {
			return err
		}
		return explain(c, judge(c, args))
	}
	c.RunE = func(c *cobra.Command, args []string) error { return explain(c, run(c, args)) }
}

// apply sets the flags of a command that the command line does not.
func (p *program) apply(c *cobra.Command) error {
	said, problems := p.said()
	if len(problems) > 0 {
		return &Error{problems}
	}
	var err error
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		v, ok := said[keyOf(f)]
		if !ok || f.Changed || err != nil {
			return
		}
		if err = kindOf(f).set(f, v); err == nil {
			f.Changed = true
			annotate(f, originAnnotation, v.from)
		}
	})
	return err
}

// said is what the file and the environment say, by key, and what is wrong with it.
func (p *program) said() (map[string]value, []Problem) {
	said, problems := map[string]value{}, []Problem(nil)
	if file := p.file(); file != "" {
		said, problems = p.readFile(file)
	}
	fromEnvironment, more := p.readEnvironment(os.Environ())
	for key, v := range fromEnvironment {
		said[key] = v
	}
	return said, append(problems, more...)
}

// file is the name of the file with settings, "" for none.
func (p *program) file() string {
	f := p.root.PersistentFlags().Lookup(configFlag)
	if f.Changed {
		return f.Value.String()
	}
	return os.Getenv(f.Annotations[EnvAnnotation][0])
}

func (p *program) find(key string) *setting {
	for _, s := range p.settings {
		if s.key == key {
			return s
		}
	}
	return nil
}

func keyOf(f *pflag.Flag) string {
	if key := f.Annotations[KeyAnnotation]; len(key) == 1 {
		return key[0]
	}
	return ""
}

func annotate(f *pflag.Flag, name, text string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[name] = []string{text}
}
