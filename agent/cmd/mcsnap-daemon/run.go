// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/agent/command"
	"github.com/mcsnap/mcsnap/agent/daemon/node"
	"github.com/mcsnap/mcsnap/agent/daemon/units"
	"github.com/mcsnap/mcsnap/agent/root"
)

func runCommand(f *flags) *cobra.Command {
	var reboot, format string
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Keep this node at its desired config until told to stop",
		Long: `Connects to the cluster as the kubelet, and tells how far the node is in the
annotations currentConfig, state and reason, as OpenShift's daemon does. An update
is all or nothing: one that was cut is finished, or taken back, at the next start.

With a --root other than / no machine is touched: units are enabled below that
root and nothing is rebooted.`,
		Example: `  mcsnap-daemon run
  mcsnap-daemon run --reboot=never --drift-interval 5m
  mcsnap-daemon run --root /tmp/node --kubeconfig kubeconfig --node worker-0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return command.WithRoot(f.root, func(at *root.Root) error {
				return f.run(cmd.Context(), at, reboot, every, command.Logger(format, cmd.ErrOrStderr()))
			})
		},
	}
	f.cluster(cmd)
	command.Choice(cmd, &reboot, "reboot", "", "`policy` after an update: auto, or never", "auto", "never")
	cmd.Flags().DurationVar(&every, "drift-interval", time.Minute, "how often the disk is compared with the config, and what failed is tried again")
	command.LogFormat(cmd, &format)
	return cmd
}

func (f *flags) run(ctx context.Context, at *root.Root, reboot string, every time.Duration, log *slog.Logger) error {
	options, closeUnits, err := f.options(ctx, at, log)
	if err != nil {
		return err
	}
	defer closeUnits()
	if options.Cluster, options.Name, err = f.connect(); err != nil {
		return err
	}
	options.Every = every
	options.Ready = func() { notify(log, "READY=1\nSTATUS=keeping "+options.Name+" at its desired config") }
	if manager, is := options.Updater.Units.(*units.Manager); is && reboot == "auto" {
		options.Reboot = manager.Reboot
	}
	log.Info("starting", "node", options.Name, "root", at.Dir(), "version", version)
	if err := node.Run(ctx, options); err != nil {
		return &command.CodedError{Code: command.Machine, Cause: err}
	}
	return nil
}

func notify(log *slog.Logger, state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		log.Warn("systemd was not told", "problem", err)
	}
}
