// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/agent/command"
	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
)

func statusCommand(at *string) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Tell what this node was born with and how far its hand-over is",
		Long:    "Reads the node's files and tells, without any content of a file, what the node was born with, whether the\nsnapshot verifies, what the daemon's current config is, and whether the node has joined.",
		Example: "  mcsnap-agent status\n  mcsnap-agent status -o json | jq .snapshot",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return command.WithRoot(*at, func(node *root.Root) error {
				status := handoff.Inspect(node)
				return command.Print(cmd, output, status, func(w io.Writer) { writeStatus(w, status) })
			})
		},
	}
	command.Output(cmd, &output)
	return cmd
}

func writeStatus(w io.Writer, s handoff.Status) {
	line := func(about, format string, args ...any) { command.Line(w, about, format, args...) }
	switch a := s.Annotations; {
	case a != nil && a.Config != "":
		line("born with", "%s", strings.TrimSpace(a.Config+" "+string(a.Digest)))
	default:
		line("born with", "not said by %s", handoff.AnnotationsPath)
	}
	line("snapshot", "%s", snapshotLine(s.Snapshot))
	line("current", "%s", strings.TrimSpace(string(s.Current.Content)+" "+s.Current.Name))
	switch r := s.Record; {
	case r == nil:
		line("handed over", "no")
	case r.Stage == handoff.Done:
		line("handed over", "%s, %s, boot %s, mcsnap %s", r.Name, r.Source, r.BootID, r.Version)
	default:
		line("handed over", "%s: %s", r.Stage, r.Name)
	}
	if s.Joined == "" {
		line("joined", "no")
	} else {
		line("joined", "yes: %s", s.Joined)
	}
	for _, problem := range s.Problems {
		line("problem", "%s", problem)
	}
}

func snapshotLine(s handoff.SnapshotStatus) string {
	if !s.Verified {
		return s.Problem
	}
	overlays := fmt.Sprintf("%d overlays", len(s.Overlays))
	if len(s.Overlays) == 1 {
		overlays = "1 overlay"
	}
	return fmt.Sprintf("verified, %s: %s of pool %s, %s", overlays, s.Name, s.Pool, s.Digest)
}

func verifyCommand(at *string) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "verify [FILE]",
		Short:   "Check a snapshot against its digest",
		Long:    "Verifies the node's snapshot, or the FILE of it that is named (a path below --root). Exit code 6 means that the\ncontent does not match the digest, 3 that the file is no snapshot.",
		Example: "  mcsnap-agent verify\n  mcsnap-agent verify /var/tmp/mcd-snapshot.json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withSnapshot(*at, args, func(s *snapshot.Snapshot) error {
				status := handoff.SnapshotStatus{Verified: true, Name: s.Name(), Pool: s.Pool(), Digest: s.Digest()}
				for _, overlay := range s.Overlays() {
					status.Overlays = append(status.Overlays, overlay.Path)
				}
				return command.Print(cmd, output, status, func(w io.Writer) { fmt.Fprintln(w, snapshotLine(status)) })
			})
		},
	}
	command.Output(cmd, &output)
	return cmd
}

func showCommand(at *string) *cobra.Command {
	var output string
	var whole bool
	cmd := &cobra.Command{
		Use:   "show [FILE]",
		Short: "List what the snapshot's config puts on the node",
		Long: `Lists files, units, users and the other fields of the snapshot's config by name,
mode, size and digest. --machine-config prints the MachineConfig itself, as the
daemon gets it: it holds secrets.`,
		Example: "  mcsnap-agent show\n  mcsnap-agent show -o json | jq -r '.files[].name'\n  mcsnap-agent show --machine-config | jq .spec.kernelArguments",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withSnapshot(*at, args, func(s *snapshot.Snapshot) error {
				if whole {
					exported, err := s.Export("")
					if err == nil {
						_, err = cmd.OutOrStdout().Write(exported)
					}
					return err
				}
				listing := handoff.Contents(s)
				return command.Print(cmd, output, listing, func(w io.Writer) { writeListing(w, listing) })
			})
		},
	}
	command.Output(cmd, &output)
	cmd.Flags().BoolVar(&whole, "machine-config", false, "print the whole MachineConfig, secrets included")
	return cmd
}

func writeListing(w io.Writer, l handoff.Listing) {
	for _, kind := range []struct {
		name    string
		entries []handoff.Listed
	}{{"file", l.Files}, {"unit", l.Units}, {"user", l.Users}, {"other", l.Other}} {
		for _, e := range kind.entries {
			fmt.Fprintf(w, "%-6s%-5s%9d  %.12s  %s\n", kind.name, e.Mode, e.Size, e.SHA256, e.Name)
		}
	}
}

// withSnapshot opens the node's snapshot, or the one in the file that args name.
func withSnapshot(at string, args []string, do func(*snapshot.Snapshot) error) error {
	name := snapshot.Path
	if len(args) == 1 {
		name = path.Join("/", args[0])
	}
	return command.WithRoot(at, func(node *root.Root) error {
		sealed, err := node.ReadFile(name, snapshot.MaxSealed)
		if err != nil {
			return err
		}
		s, err := snapshot.Open(sealed)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return do(s)
	})
}
