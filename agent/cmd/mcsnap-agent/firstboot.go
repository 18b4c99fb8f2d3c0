// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
			log, err := logger(format)
			if err != nil {
				return err
			}
			if onFailure != "" {
				if _, err := handoff.ParseOnFailure(onFailure); err != nil {
					return &usageError{err}
				}
			}
			if deadline <= 0 {
				return &usageError{fmt.Errorf("--fetch-deadline %v: give a time above zero", deadline)}
			}
			node, err := root.Open(*at, nil)
			if err != nil {
				return &handoff.MachineError{Cause: err}
			}
			defer node.Close() //nolint:errcheck // a folder that was only read through
			return firstboot(cmd.Context(), node, log, handoff.OnFailure(onFailure), deadline)
		},
	}
	cmd.Flags().StringVar(&onFailure, "on-failure", "", "`policy` for a hand-over that fails: continue or block (default: agent.yaml's onFailure, else continue)")
	cmd.Flags().DurationVar(&deadline, "fetch-deadline", 5*time.Minute, "how long one attempt may ask the servers for a damaged snapshot")
	cmd.Flags().StringVar(&format, "log-format", "text", "`format` of the log on stderr: text or json")
	return cmd
}

func firstboot(ctx context.Context, node *root.Root, log *slog.Logger, flag handoff.OnFailure, deadline time.Duration) error {
	options := handoff.Options{
		Node:    node,
		Fetch:   fetcher(log, deadline),
		Tell:    &handoff.Systemd{Log: log, Journal: node.Dir() == "/"},
		BootID:  bootID(),
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
		return &toldError{err}
	}
	return nil
}

// bootID is the kernel's id of this boot, "" where the kernel does not tell.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

func logger(format string) (*slog.Logger, error) {
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(os.Stderr, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(os.Stderr, nil)), nil
	}
	return nil, &usageError{errors.New("--log-format " + format + ": use text or json")}
}

// nodePath is a path of the node for a file named on the command line.
func nodePath(name string) string { return filepath.Join("/", name) }
