// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/mcs/run"
	"github.com/mcsnap/mcsnap/snapshot/durable"
)

// privateToGroup is the state folder's mode when a group has it: nobody else may even look.
const privateToGroup = 0o770

func storePrepareCommand() *cobra.Command {
	var (
		where stored
		group int
	)
	cmd := &cobra.Command{
		Use:   "prepare",
		Short: "Give a state folder to the group that the server runs in",
		Long: `Make the state folder if it is missing, and give it to a group: its members may write to it, others may not even
look. A server that is not root needs that where the folder is made by root, as a kubelet makes a hostPath. No capability
is needed: root may give its own folder to a group that it is in itself. What lies in the folder is left as it is.

Exit codes: ` + storeExitCodes,
		Example: `  mcs store prepare --state-dir /var/lib/mcs --group 65532`,
		Args:    noArguments,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			if group < 0 {
				return usage("--group is missing: give the number of the group that the server runs in")
			}
			return where.judge(cmd, args)
		},
		RunE: func(*cobra.Command, []string) error {
			if err := prepare(where.stateDir, group); err != nil {
				return &run.MachineError{Cause: err}
			}
			return nil
		},
	}
	where.register(cmd, false)
	cmd.Flags().IntVar(&group, "group", -1, "number of the group that gets the folder")
	return cmd
}

func prepare(dir string, group int) error {
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	if err := os.Lchown(dir, -1, group); err != nil {
		return fmt.Errorf("state folder: %w; run this as its owner, in group %d", err, group)
	}
	// After the group has changed: before, another one would be let in.
	if err := os.Chmod(dir, privateToGroup); err != nil {
		return fmt.Errorf("state folder: %w; run this as its owner", err)
	}
	return nil
}
