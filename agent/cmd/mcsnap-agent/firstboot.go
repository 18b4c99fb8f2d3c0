// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/agent/command"
	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/agent/root"
)

func firstbootCommand(at *string) *cobra.Command {
	var onFailure, format string
	var deadline time.Duration
	cmd := &cobra.Command{
		Use:   "firstboot",
		Short: "Verify the snapshot and hand its config over, unless the node has joined",
		Long: `Verifies /etc/mcd-snapshot.json and writes the config in it to
/etc/machine-config-daemon/currentconfig, durably, and as often as it is called.

A damaged or missing snapshot is fetched again from the servers in
/etc/mcsnap/agent.yaml, by the digest in the node's annotations file. A node that
has joined its cluster is left alone. A snapshot and annotations of two different
configs are refused.

What a failure means for the kubelet is --on-failure: with "continue" the unit
fails and the kubelet starts; with "block" the attempts, and the unit's start, go
on until one succeeds.`,
		Example: `  mcsnap-agent firstboot
  mcsnap-agent firstboot --root /tmp/node --fetch-deadline 30s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if deadline <= 0 {
				return &command.UsageError{Cause: fmt.Errorf("--fetch-deadline %v: give a time above zero", deadline)}
			}
			return command.WithRoot(*at, func(node *root.Root) error {
				return firstboot(cmd.Context(), node, command.Logger(format, cmd.ErrOrStderr()), handoff.OnFailure(onFailure), deadline)
			})
		},
	}
	command.Choice(cmd, &onFailure, "on-failure", "", "`policy` for a hand-over that fails: continue or block (default: agent.yaml's onFailure, else continue)",
		"", string(handoff.Continue), string(handoff.Block))
	cmd.Flags().DurationVar(&deadline, "fetch-deadline", 5*time.Minute, "how long one attempt may ask the servers for a damaged snapshot")
	command.LogFormat(cmd, &format)
	return cmd
}

func firstboot(ctx context.Context, node *root.Root, log *slog.Logger, flag handoff.OnFailure, deadline time.Duration) error {
	options := handoff.Options{
		Node:    node,
		Fetch:   fetcher(log, deadline),
		Tell:    &handoff.Systemd{Log: log, Journal: node.Dir() == "/"},
		BootID:  command.BootID(),
		Version: version,
		Log:     log,
	}
	policy, problem := handoff.Policy(options, flag)
	if problem != nil {
		log.Warn("agent.yaml is of no use: a damaged snapshot could not be fetched", "problem", problem)
	}
	attempt := handoff.Run
	if policy == handoff.Block {
		attempt = handoff.Persist
	}
	if _, err := attempt(ctx, options); err != nil {
		return &command.ToldError{Cause: err}
	}
	return nil
}
