// SPDX-License-Identifier: Apache-2.0

// Command ignition-stub is the node's side of the fetch: it makes the config that becomes a machine's user-data,
// fetches as a machine would, and tells why one does not come up.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

var version = "unknown" // set by the linker

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// What waits for a terminal or a pipe looks at no context: it gets a moment, and then the end.
	context.AfterFunc(ctx, func() {
		stop()
		time.Sleep(time.Second)
		fmt.Fprintln(os.Stderr, "ignition-stub: interrupted")
		os.Exit(1)
	})
	err := root().ExecuteContext(ctx)
	if err != nil && !wasTold(err) {
		fmt.Fprintln(os.Stderr, "ignition-stub:", err)
	}
	os.Exit(exitCode(err))
}

func root() *cobra.Command {
	command := &cobra.Command{
		Use:   "ignition-stub",
		Short: "Stubs for machines that boot with Ignition, and what they fetch",
		Long: `A machine's user-data is a stub: a small Ignition config that says where the real one is, and whom to believe.
ignition-stub makes it (render), does what a machine will do with it (fetch), finds out why machines do not come up
(doctor), and shows what is in a config (inspect).

Exit codes: ` + exitCodes,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	command.AddCommand(renderCommand(), fetchCommand(), doctorCommand(), inspectCommand())
	return command
}
