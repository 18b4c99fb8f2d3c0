// SPDX-License-Identifier: Apache-2.0

// Package command is what the node's two programs have in common as commands: how they end, what they log, how they
// print, and the flags that mean the same in both. It knows nothing of what a command does.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs a program's command with the process's arguments and ends the process. The first SIGINT or SIGTERM ends the
// command's context, a second one the process.
func Main(root *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(Run(ctx, root, os.Args[1:]))
}

// Run runs a program's command and returns the process's exit code. A failure that was not told yet is told on stderr, in
// one line.
func Run(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if _, told := errors.AsType[*ToldError](err); !told {
		fmt.Fprintf(root.ErrOrStderr(), "%s: %s\n", root.Name(), strings.Join(strings.Fields(err.Error()), " ")) // cobra's hints have lines of their own
	}
	return ExitCode(err)
}

// Root makes a program's topmost command of what is its own, with the commands below it. Whatever is wrong with a command
// line is told as a [UsageError].
func Root(root *cobra.Command, below ...*cobra.Command) *cobra.Command {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.Args = cobra.NoArgs
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &UsageError{err} })
	for _, sub := range below {
		check := sub.Args
		sub.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return &UsageError{err}
			}
			return nil
		}
		if sub.ValidArgsFunction == nil {
			sub.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
	root.AddCommand(below...)
	return root
}

// BootID is the kernel's id of this boot, "" where the kernel does not tell.
func BootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
