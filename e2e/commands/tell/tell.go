// SPDX-License-Identifier: Apache-2.0

// Package tell is what a program does when it is built to describe itself instead of to work: e2e/commands puts a call of
// Main before the program's own main. So whatever is said of commands comes from the commands, and the programs that
// people run carry none of it.
package tell

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcsnap/mcsnap/e2e/commands/tree"
	"github.com/mcsnap/mcsnap/mcs/settings"
)

// Main describes the command in the way that the arguments ask for, and ends the process.
func Main(root *cobra.Command) {
	if err := describe(root, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func describe(root *cobra.Command, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "tree":
		root.InitDefaultCompletionCmd()
		root.InitDefaultHelpCmd()
		return json.NewEncoder(os.Stdout).Encode(command(root))
	case len(args) == 2 && args[0] == "share":
		return share(root, args[1])
	}
	return fmt.Errorf("asked for %q; want tree, or share FOLDER", args)
}

func command(cmd *cobra.Command) *tree.Command {
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	told := &tree.Command{
		Name: cmd.Name(), Use: cmd.UseLine(), Short: cmd.Short, Long: cmd.Long, Example: cmd.Example,
		Runs: cmd.Runnable(), Hidden: cmd.Hidden,
	}
	add := func(f *pflag.Flag) { told.Flags = append(told.Flags, flag(cmd, f)) }
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	slices.SortFunc(told.Flags, func(a, b tree.Flag) int { return strings.Compare(a.Name, b.Name) })
	for _, sub := range cmd.Commands() {
		told.Commands = append(told.Commands, command(sub))
	}
	return told
}

func flag(cmd *cobra.Command, f *pflag.Flag) tree.Flag {
	kind, meaning := pflag.UnquoteUsage(f)
	told := tree.Flag{
		Name: f.Name, Short: f.Shorthand, Kind: kind, Meaning: meaning, Default: f.DefValue,
		Alone: f.NoOptDefVal != "", Hidden: f.Hidden,
		Env: strings.Join(f.Annotations[settings.EnvAnnotation], ""), Key: strings.Join(f.Annotations[settings.KeyAnnotation], ""),
	}
	if complete, ok := cmd.GetFlagCompletionFunc(f.Name); ok {
		values, _ := complete(cmd, nil, "")
		for _, value := range values {
			value, _, _ = strings.Cut(value, "\t")
			told.Values = append(told.Values, value)
		}
	}
	return told
}
