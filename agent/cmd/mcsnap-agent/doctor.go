// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/agent/command"
	"github.com/mcsnap/mcsnap/agent/doctor"
	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/agent/root"
)

// doctorDeadline bounds the question to the servers: a person waits for the answer.
const doctorDeadline = 10 * time.Second

func doctorCommand(at *string) *cobra.Command {
	var output, cluster string
	var offline bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out who still has this node's config, what differs, and what is safe to do",
		Long: `Looks at the node's files, asks its servers whether they still have the snapshot's
digest, and compares with a dump of the cluster if one is given. It prints which
of them can supply the config the node needs, what differs by file, and the one
action that is safe. It changes nothing and prints no content of any file.`,
		Example: `  mcsnap-agent doctor
  oc get machineconfigs,machineconfigpools -o yaml > dump.yaml
  mcsnap-agent doctor --cluster dump.yaml --offline -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dump, err := readDump(cluster)
			if err != nil {
				return err
			}
			ask := asker(doctorDeadline)
			if offline {
				ask = nil
			}
			return command.WithRoot(*at, func(node *root.Root) error {
				report := doctor.Examine(cmd.Context(), node, ask, dump)
				return command.Print(cmd, output, report, func(w io.Writer) { writeReport(w, report) })
			})
		},
	}
	command.Output(cmd, &output)
	cmd.Flags().StringVar(&cluster, "cluster", "", "`file` with the cluster's MachineConfigs and MachineConfigPools, JSON or YAML")
	cmd.Flags().BoolVar(&offline, "offline", false, "ask no server")
	return cmd
}

func readDump(name string) (*doctor.Dump, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	dump, err := doctor.ParseDump(text)
	if err != nil {
		return nil, &handoff.InputError{Path: name, Problem: err.Error(), Remedy: "make the dump again"}
	}
	return dump, nil
}

func writeReport(w io.Writer, r doctor.Report) {
	fmt.Fprintf(w, "needs     %s\n", r.Need)
	for _, source := range r.Sources {
		mark := "no "
		if source.Has {
			mark = "yes"
		}
		fmt.Fprintf(w, "%-9s %s  %s\n", source.Name, mark, source.Says)
	}
	for _, line := range r.Differences {
		fmt.Fprintf(w, "differs   %s\n", line)
	}
	for _, line := range r.Problems {
		fmt.Fprintf(w, "problem   %s\n", line)
	}
	fmt.Fprintf(w, "to do     %s\n", r.Action)
}
