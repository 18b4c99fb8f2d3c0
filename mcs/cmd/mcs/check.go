// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/publish"
	"github.com/mcsnap/mcsnap/mcs/run"
	"github.com/mcsnap/mcsnap/mcs/source/directory"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// finding is what is said of one pool.
type finding struct {
	Pool     string `json:"pool"`
	Rendered string `json:"rendered,omitempty"`
	Digest   string `json:"digest,omitempty"`
	Own      string `json:"ownVersion,omitempty"`
	// NotServed maps spec versions to why they cannot be served.
	NotServed map[string]string `json:"notServed,omitempty"`
	// Warnings are Ignition's own about the rendered config.
	Warnings []string `json:"warnings,omitempty"`
	Problem  string   `json:"problem,omitempty"`
}

// standIns are in the places of what a server adds, so that a config which is in their way is found here too.
var standIns = compose.Inputs{
	AgentConfig: []byte("# a stand-in\n"),
	Agents: []compose.Agent{{
		Arch: "amd64", URL: "https://mcs.invalid/agent/stand-in", SHA512: strings.Repeat("0", 128),
	}},
	CompatContentFile: true,
}

func checkCommand() *cobra.Command {
	var dir, output string
	cmd := &cobra.Command{
		Use:   "check --dir DIR",
		Short: "Say what a folder would be served as, and what is wrong with it",
		Long: `Read a folder as mcs bootstrap does, compose every pool in every Ignition version, and say what would be
served and what is wrong, with Ignition's own warnings. What a server adds (agent, credentials) has stand-ins, so that a
config in its way is found. Nothing is written and nothing is served.

Exit codes: ` + exitCodes + ` Here 3 means that the folder has a problem.`,
		Example: `  mcs check --dir ./example
  mcs check --dir ./example -o json`,
		Args: noArguments,
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case dir == "":
				return usage("--dir is missing: give the folder with machine-pools and machine-configs")
			case output != "text" && output != "json":
				return usage("--output %.20q: use text or json", output)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := os.Stat(dir); err != nil {
				return &run.InputError{Cause: fmt.Errorf("--dir %s: is not a folder that can be read; give another", dir)}
			}
			silent := slog.New(slog.DiscardHandler)
			kept := store.NewMemory()
			from := directory.New(directory.Config{Dir: dir, Store: kept, Log: silent})
			view, _ := from.Load(cmd.Context())
			publisher := publish.New(publish.Config{Store: kept, Log: silent, Inputs: standIns})
			if view.Kubeconfig == nil {
				view.Kubeconfig = []byte("# a stand-in\n")
			}
			publisher.Update(cmd.Context(), view)

			problems := from.Problems()
			var findings []finding
			for _, pool := range publisher.Pools() {
				a, _ := publisher.Answer(pool)
				f := finding{Pool: pool, Rendered: a.Rendered, Digest: string(a.Digest), Problem: a.Reason + a.Stale}
				if a.Ready() {
					f.Own = a.Own.String()
					if body := a.Bodies[a.Own]; body != nil {
						f.Warnings = body.Warnings
					}
				}
				for v, why := range a.Inexpressible {
					if f.NotServed == nil {
						f.NotServed = map[string]string{}
					}
					f.NotServed[v.String()] = why.Error()
				}
				if f.Problem != "" && !slices.Contains(problems, f.Problem) {
					problems = append(problems, f.Problem)
				}
				findings = append(findings, f)
			}
			if len(findings) == 0 {
				problems = append(problems, dir+": holds no pool; put MachineConfigPools into machine-pools/")
			}
			if err := print(cmd.OutOrStdout(), output, findings, problems); err != nil {
				return err
			}
			if len(problems) > 0 {
				return &run.InputError{Cause: fmt.Errorf("%s has %d problem(s); mend what is listed", dir, len(problems))}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the folder")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

func print(to io.Writer, output string, findings []finding, problems []string) error {
	if output == "json" {
		enc := json.NewEncoder(to)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{"pools": findings, "problems": problems})
	}
	var text strings.Builder
	for _, f := range findings {
		if f.Digest != "" {
			fmt.Fprintf(&text, "%s: %s, Ignition %s, %s\n", f.Pool, f.Rendered, f.Own, f.Digest)
		}
		for _, v := range slices.Sorted(maps.Keys(f.NotServed)) {
			fmt.Fprintf(&text, "%s: not in Ignition %s: %s\n", f.Pool, v, f.NotServed[v])
		}
	}
	for _, f := range findings {
		for _, warning := range f.Warnings {
			fmt.Fprintf(&text, "%s: warning: %s\n", f.Pool, warning)
		}
	}
	for _, problem := range problems {
		fmt.Fprintf(&text, "problem: %s\n", problem)
	}
	_, err := io.WriteString(to, text.String())
	return err
}
