// SPDX-License-Identifier: Apache-2.0

// Command mcsnap-daemon keeps a node at the config its annotations ask for, starting from the snapshot it was born with.
// It is the reference daemon, for clusters without OpenShift's operator.
package main

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

// version is set by the build.
var version = "devel"

// The exit codes that every command of mcsnap shares.
const (
	exitOther   = 1
	exitUsage   = 2
	exitMachine = 4
	exitNetwork = 5
)

// codedError is an error with the exit code it asks for.
type codedError struct {
	code  int
	cause error
}

func (e *codedError) Error() string { return e.cause.Error() }
func (e *codedError) Unwrap() error { return e.cause }

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
	fmt.Fprintln(os.Stderr, "mcsnap-daemon:", err)
	if coded, is := errors.AsType[*codedError](err); is {
		return coded.code
	}
	if strings.HasPrefix(err.Error(), "unknown command") {
		return exitUsage
	}
	return exitOther
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "mcsnap-daemon",
		Short: "Keep a node at the config its pool asks for",
		Long: `mcsnap-daemon is the reference daemon of mcsnap, for clusters without OpenShift's
operator. It starts from /etc/mcd-snapshot.json, watches its own Node, and brings
the node's files, units and SSH keys to the config that the annotation
machineconfiguration.openshift.io/desiredConfig names.

Exit codes: 0 told to stop, 1 other failure, 2 wrong usage, 4 this machine (a
file, systemd's bus), 5 no way to the cluster.`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return &codedError{exitUsage, fmt.Errorf("%w; see --help", err)}
	})
	root.AddCommand(runCommand())
	return root
}
