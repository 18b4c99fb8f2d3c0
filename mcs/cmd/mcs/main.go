// SPDX-License-Identifier: Apache-2.0

// Command mcs is the server that hands machine configs to booting nodes and keeps what it handed out.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/mcs/settings"
)

// version is set when a release is built (-ldflags "-X main.version=…").
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mcs:", strings.Join(strings.Fields(err.Error()), " ")) // one line, cobra's hints too
		os.Exit(exitCode(err))
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcs",
		Short: "Serve machine configs to booting nodes, and keep what was served",
		Long: `mcs answers booting nodes as OpenShift's machine-config server does, and gives each node a copy of the
rendered config it runs (a snapshot). What was served once stays servable by its digest, whoever deletes the original.

Every flag can be said in a file (--config) and in the environment (MCS_SERVE_LISTEN) too: see mcs config --help.

Exit codes: ` + exitCodes,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	cmd.AddCommand(serveCommand(), bootstrapCommand(), checkCommand(), storeCommand())
	settings.Bind(cmd, "state-dir")
	return cmd
}
