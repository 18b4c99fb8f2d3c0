// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/mcs/run"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// stored holds the flags of the store commands.
type stored struct{ stateDir, output string }

func storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Look at what a server keeps, repair a cluster from it, and remove what is no longer needed",
		Long: `A server keeps every rendered config that it captured in its state folder, by digest. These commands work on that
folder, with or without a server running on it. What they print of a snapshot's contents holds secrets; only export and
show --contents print any.

Exit codes: ` + storeExitCodes,
		Example: `  mcs store ls
  mcs store export rendered-worker-7e1b47bed97a93875424c5a769300940 --kubeconfig ~/.kube/config | kubectl create -f -
  mcs store prune --kubeconfig ~/.kube/config`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("unknown command %q for mcs store", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(storeLsCommand(), storeShowCommand(), storeExportCommand(), storeVerifyCommand(), storePruneCommand(), storePrepareCommand())
	return cmd
}

func (s *stored) register(cmd *cobra.Command, printing bool) {
	cmd.Flags().StringVar(&s.stateDir, "state-dir", "/var/lib/mcs", "the server's state folder")
	if printing {
		cmd.Flags().StringVarP(&s.output, "output", "o", "text", "text or json")
	}
}

// judge looks at the flags before anything is opened.
func (s *stored) judge(*cobra.Command, []string) error {
	switch {
	case s.output != "" && s.output != "text" && s.output != "json":
		return usage("--output %.20q: use text or json", s.output)
	case s.stateDir == "":
		return usage("--state-dir is empty: give the server's state folder")
	}
	return nil
}

// log is for what commands find besides.
func (s *stored) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// lock makes this command the one that writes to the state folder.
func (s *stored) lock() (unlock func(), err error) {
	unlock, err = run.Lock(s.stateDir, s.log())
	if err != nil {
		return nil, &run.MachineError{Cause: fmt.Errorf("nothing is removed: %w; or give --beside-server, see --help", err)}
	}
	return unlock, nil
}

// open opens the store of a state folder, which has to be there.
func (s *stored) open() (*store.Dir, error) {
	dir := filepath.Join(s.stateDir, "store")
	if _, err := os.ReadDir(dir); errors.Is(err, os.ErrNotExist) {
		return nil, &run.InputError{Cause: fmt.Errorf("--state-dir %s: holds no store; give the folder that the server has", s.stateDir)}
	} else if err != nil {
		return nil, &run.MachineError{Cause: fmt.Errorf("--state-dir: %w; run this as the server's user", err)}
	}
	d, err := store.OpenDir(dir, s.log())
	if err != nil {
		return nil, &run.MachineError{Cause: err}
	}
	return d, nil
}

// json prints a value and tells whether that is what was asked for.
func (s *stored) json(cmd *cobra.Command, value any) (bool, error) {
	if s.output != "json" {
		return false, nil
	}
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetIndent("", "  ")
	return true, enc.Encode(value)
}

func storeLsCommand() *cobra.Command {
	var flags stored
	cmd := &cobra.Command{
		Use: "ls", Short: "List what is stored, the newest of each name first",
		Long:    "List the stored snapshots: names, sizes and times, no contents.\n\nExit codes: " + storeExitCodes,
		Example: "  mcs store ls\n  mcs store ls -o json | jq -r '.[] | select(.pool==\"worker\").digest'",
		Args:    noArguments,
		PreRunE: flags.judge,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := flags.open()
			if err != nil {
				return err
			}
			defer d.Close() //nolint:errcheck // only read
			entries, err := d.Entries(cmd.Context())
			if err != nil {
				return &run.MachineError{Cause: err}
			}
			if done, err := flags.json(cmd, entries); done {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "NAME\tDIGEST\tPOOL\tBYTES\tCAPTURED\tSERVED\tSELECTED BY")
			for _, e := range entries {
				fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", e.Name, short(e.Digest), e.Pool, e.Size, moment(e.CapturedAt), moment(e.ServedAt), dash(strings.Join(e.SelectedBy, ",")))
			}
			return table.Flush()
		},
	}
	flags.register(cmd, true)
	return cmd
}

// short is enough of a digest to tell it from others, and is accepted wherever a digest is.
func short(d snapshot.Digest) string { return "sha256:" + d.Hex()[:12] }

func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// find returns the entry of a rendered name (its newest) or a digest, which may be shortened.
func find(cmd *cobra.Command, d *store.Dir, wanted string) (store.Entry, error) {
	entries, err := d.Entries(cmd.Context())
	if err != nil {
		return store.Entry{}, &run.MachineError{Cause: err}
	}
	hex := strings.TrimPrefix(strings.TrimPrefix(wanted, "sha256:"), "sha256-")
	var found []store.Entry
	for _, e := range entries {
		if e.Name == wanted {
			return e, nil
		}
		if len(hex) >= 8 && strings.HasPrefix(e.Digest.Hex(), hex) {
			found = append(found, e)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return store.Entry{}, &run.InputError{Cause: fmt.Errorf("%.100s: not in the store; mcs store ls lists what is", wanted)}
	}
	return store.Entry{}, &run.InputError{Cause: fmt.Errorf("%.100s: %d digests begin like this; give more of it", wanted, len(found))}
}

func storeShowCommand() *cobra.Command {
	var flags stored
	var contents bool
	cmd := &cobra.Command{
		Use: "show NAME|DIGEST", Short: "Verify one snapshot and say what is known of it",
		Long:    "Verify one snapshot and say what is known of it; of a name, its newest.\n\nExit codes: " + storeExitCodes,
		Example: "  mcs store show sha256:0f3a9c1d2e4b\n  mcs store show rendered-worker-7e1b47bed97a93875424c5a769300940 --contents | jq .machineConfig.spec.osImageURL",
		Args:    oneArgument("a rendered config's name or a digest"),
		PreRunE: flags.judge,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := flags.open()
			if err != nil {
				return err
			}
			defer d.Close() //nolint:errcheck // only read
			e, err := find(cmd, d, args[0])
			if err != nil {
				return err
			}
			s, err := d.Get(cmd.Context(), e.Digest)
			if err != nil {
				return err
			}
			if contents {
				_, err := cmd.OutOrStdout().Write(s.Bytes())
				return err
			}
			if done, err := flags.json(cmd, e); done {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "name:      %s\npool:      %s\ndigest:    %s (verified)\nspec:      %s\nbytes:     %d\nfirst:     %s\ncaptured:  %s\nserved:    %s\nselected:  %s\n",
				e.Name, e.Pool, e.Digest, s.SpecDigest(), e.Size, moment(e.First), moment(e.CapturedAt), moment(e.ServedAt), dash(strings.Join(e.SelectedBy, ", ")))
			return err
		},
	}
	cmd.Flags().BoolVar(&contents, "contents", false, "print the sealed document instead, which holds secrets")
	flags.register(cmd, true)
	return cmd
}

func oneArgument(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage("want one argument: %s", what)
		}
		return nil
	}
}

func storeVerifyCommand() *cobra.Command {
	var flags stored
	cmd := &cobra.Command{
		Use: "verify", Short: "Read every snapshot and check it against its digest",
		Long: `Read every stored snapshot and check it against its digest. One that does not match is put aside in damaged/; a running
server captures it again within half a minute if the cluster still has it.

Exit codes: ` + storeExitCodes,
		Example: "  mcs store verify && echo sound",
		Args:    noArguments,
		PreRunE: flags.judge,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := flags.open()
			if err != nil {
				return err
			}
			defer d.Close() //nolint:errcheck // only read
			entries, err := d.Entries(cmd.Context())
			if err != nil {
				return &run.MachineError{Cause: err}
			}
			type result struct {
				store.Entry
				Problem string `json:"problem,omitempty"`
			}
			results, bad := []result{}, 0
			for _, e := range entries {
				r := result{Entry: e}
				if _, err := d.Get(cmd.Context(), e.Digest); err != nil {
					r.Problem, bad = err.Error(), bad+1
				}
				results = append(results, r)
			}
			aside, err := d.Damaged()
			if err != nil {
				return &run.MachineError{Cause: err}
			}
			if done, err := flags.json(cmd, map[string]any{"snapshots": results, "putAside": aside}); done {
				return errors.Join(err, damaged(bad))
			}
			for _, r := range results {
				if r.Problem != "" {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", r.Name, r.Problem)
				}
			}
			for _, path := range aside {
				fmt.Fprintf(cmd.OutOrStdout(), "put aside: %s\n", path)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d snapshots verified, %d bad\n", len(results)-bad, bad)
			return damaged(bad)
		},
	}
	flags.register(cmd, true)
	return cmd
}

// verificationError says that content does not match its digest.
type verificationError struct{ text string }

func (e *verificationError) Error() string { return e.text }

func damaged(n int) error {
	if n == 0 {
		return nil
	}
	return &verificationError{fmt.Sprintf("%d snapshots do not match their digests; they were put aside", n)}
}
