// SPDX-License-Identifier: Apache-2.0

// Command mcsnap-agent is the node's side of mcsnap on first boot: it hands the config that the node was born with over
// to the node's daemon, and tells what state that hand-over is in.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the build.
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run is main without the process.
func run(ctx context.Context, args []string) int {
	root := command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if _, told := errors.AsType[*toldError](err); !told {
		fmt.Fprintln(os.Stderr, "mcsnap-agent:", err)
	}
	return exitCode(err)
}

func command() *cobra.Command {
	var at string
	root := &cobra.Command{
		Use:   "mcsnap-agent",
		Short: "Hand the config a node was born with over to its daemon",
		Long: `mcsnap-agent works on the files of one node and knows no cluster.

On every boot until the node has joined, the unit mcsnap-firstboot.service runs
"mcsnap-agent firstboot": it verifies /etc/mcd-snapshot.json, gets it back by
digest if it is damaged, and writes the config in it where the daemon looks for
its current one. The other commands change nothing.

Exit codes: 0 done, 1 other failure, 2 wrong usage, 3 bad input, 4 this machine
(a file cannot be read or written), 5 network or server, 6 verification.`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.PersistentFlags().StringVar(&at, "root", "/", "`folder` that is the node's root")
	root.AddCommand(firstbootCommand(&at), statusCommand(&at), verifyCommand(&at), showCommand(&at), doctorCommand(&at))
	for _, sub := range root.Commands() {
		check := sub.Args
		sub.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return &usageError{err}
			}
			return nil
		}
	}
	return root
}
