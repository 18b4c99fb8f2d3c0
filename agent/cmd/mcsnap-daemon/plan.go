// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/mcsnap/mcsnap/agent/command"
	"github.com/mcsnap/mcsnap/agent/daemon/change"
	"github.com/mcsnap/mcsnap/agent/daemon/node"
	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
)

// askDeadline bounds what is asked of the cluster: a person waits for the answer.
const askDeadline = 10 * time.Second

func planCommand(f *flags) *cobra.Command {
	var output, config string
	cmd := &cobra.Command{
		Use:   "plan [FILE]",
		Short: "Tell what an update would change on this node",
		Long: `Works out, as an update does before its first step, which files, units and keys of
this node would be changed, whether a reboot would follow, and what a running node
cannot be brought to. Nothing is written, and no content of a file is printed.

FILE is a rendered MachineConfig, as JSON or YAML, or a snapshot of one; - reads it
from stdin. Without FILE it is the config that the node's annotations desire, or the
one that --config names, found as the daemon finds it: on the node, in the cluster,
or by digest on mcsnap's servers.`,
		Example: `  mcsnap-daemon plan
  mcsnap-daemon plan --config rendered-worker-2
  kubectl get machineconfig rendered-worker-2 -o yaml | mcsnap-daemon plan -
  mcsnap-daemon plan rendered.yaml -o json | jq -r '.paths[].path'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && config != "" {
				return &command.UsageError{Cause: fmt.Errorf("--config %s and FILE %s: give one of them", config, args[0])}
			}
			return command.WithRoot(f.root, func(at *root.Root) error {
				options, closeUnits, err := f.options(cmd.Context(), at, slog.New(slog.DiscardHandler))
				if err != nil {
					return err
				}
				defer closeUnits()
				var to *snapshot.Snapshot
				if len(args) == 1 {
					to, err = readConfig(cmd, args[0], options.Updater)
				} else {
					to, err = f.desired(cmd.Context(), options, config)
				}
				if err != nil {
					return err
				}
				plan, err := options.Updater.Plan(cmd.Context(), to)
				if err != nil {
					return err
				}
				return command.Print(cmd, output, plan, func(w io.Writer) { writePlan(w, plan) })
			})
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"json", "yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	f.cluster(cmd)
	cmd.Flags().StringVar(&config, "config", "", "`name` of a rendered config of the cluster (default: the one the node's annotations desire)")
	command.Output(cmd, &output)
	return cmd
}

// desired finds a config of the cluster, the desired one without a name.
func (f *flags) desired(ctx context.Context, options node.Options, name string) (*snapshot.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, askDeadline)
	defer cancel()
	var err error
	if options.Cluster, options.Name, err = f.connect(); err != nil {
		return nil, err
	}
	digest := ""
	if name == "" {
		says, err := node.Ask(ctx, options)
		if err != nil {
			return nil, &command.CodedError{Code: command.Network, Cause: err}
		}
		if name, digest = says.Desired, says.Snapshot; name == "" {
			return nil, fmt.Errorf("node %s has no annotation %s yet, so no config is desired; name one with --config, or give a FILE", options.Name, node.DesiredConfig)
		}
	}
	found, err := node.Find(ctx, options, name, digest)
	if err != nil {
		return nil, &command.CodedError{Code: command.Network, Cause: err}
	}
	return found, nil
}

// readConfig reads a MachineConfig, or a snapshot, from a file of this machine.
func readConfig(cmd *cobra.Command, name string, node *change.Updater) (*snapshot.Snapshot, error) {
	var text []byte
	var err error
	if name == "-" {
		text, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), snapshot.MaxSealed))
	} else {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, &command.CodedError{Code: command.Input, Cause: fmt.Errorf("%s: neither JSON nor YAML: %w", name, err)}
	}
	if s, err := snapshot.Open(text); err == nil {
		return s, nil
	}
	pool := "worker" // is no part of what is compared
	if current, err := node.Current(); err == nil {
		pool = current.Pool()
	}
	s, err := snapshot.Seal(asJSON, pool)
	if err != nil {
		return nil, &command.CodedError{Code: command.Input, Cause: fmt.Errorf("%s: %w", name, err)}
	}
	return s, nil
}

func writePlan(w io.Writer, p *change.Plan) {
	line := func(about, format string, args ...any) { command.Line(w, about, format, args...) }
	line("from", "%s %s", p.From, p.FromDigest)
	line("to", "%s %s", p.To, p.ToDigest)
	for _, field := range p.Unreconcilable {
		line("cannot", "%s", field)
	}
	if len(p.Unreconcilable) > 0 {
		line("outcome", "Unreconcilable: nothing is changed; provision a new node, or take the change back")
		return
	}
	for _, path := range p.Paths {
		line(path.Do, "%s (%s)", path.Path, path.How)
	}
	for _, unit := range p.Units {
		line("unit", "%s: %s", unit.Do, unit.Name)
	}
	switch {
	case len(p.Paths)+len(p.Units) == 0:
		line("outcome", "nothing is changed")
	case p.Reboot:
		line("outcome", "%d paths, %d units, then a reboot", len(p.Paths), len(p.Units))
	default:
		line("outcome", "%d paths, %d units, no reboot", len(p.Paths), len(p.Units))
	}
}
