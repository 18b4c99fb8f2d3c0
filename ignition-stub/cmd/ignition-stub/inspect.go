// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
	"github.com/mcsnap/mcsnap/ignition-stub/inspect"
	"github.com/mcsnap/mcsnap/ignition-stub/stub"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

type inspectFlags struct {
	access   accessFlags
	diff     bool
	form     string
	deadline time.Duration
}

func inspectCommand() *cobra.Command {
	f := &inspectFlags{}
	command := &cobra.Command{
		Use:   "inspect CONFIG | URL   or   inspect --diff A B",
		Short: "Show what is in a config or snapshot, or what differs between two",
		Long: `Shows files, units, users and kernel arguments of an Ignition config, a snapshot or a MachineConfig, and which rendered
config its snapshot is. Contents, passwords, keys and headers are not shown, but told by size. With --diff two of them
are compared by what they ask of a node: contents that are only encoded in another way, and files in another order, are
told apart from real differences.

Exit codes: 0 shown, or no real difference; 1 a real difference, or a snapshot that does not verify; 3 the document is
none of these.`,
		Example: `  ignition-stub inspect /etc/mcd-snapshot.json
  ignition-stub inspect https://api-int.example.com:22623/config/worker --ca ca.crt -o json
  ignition-stub inspect --diff before.ign after.ign`,
		Args: func(_ *cobra.Command, args []string) error {
			if want := map[bool]int{false: 1, true: 2}[f.diff]; len(args) != want {
				return usage("want %d documents (files or URLs), got %d", want, len(args))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error { return f.run(command, args) },
	}
	flags := command.Flags()
	f.access.register(flags, "with a URL: ")
	flags.BoolVar(&f.diff, "diff", false, "compare two documents")
	flags.DurationVar(&f.deadline, "deadline", time.Minute, "with a URL: how long to try")
	flags.StringVarP(&f.form, "output", "o", "text", "text or json")
	complete(command, "output", "text", "json")
	return command
}

func (f *inspectFlags) run(command *cobra.Command, args []string) error {
	access, err := f.access.read(command.InOrStdin())
	if err != nil {
		return err
	}
	var documents []*inspect.Document
	for _, arg := range args {
		document, err := f.read(command, access, arg)
		if err != nil {
			return fmt.Errorf("%s: %w", shownArgument(arg), err)
		}
		documents = append(documents, document)
	}
	if f.diff {
		return f.compare(command, documents[0], documents[1])
	}
	if err := print(command.OutOrStdout(), f.form, documents[0], documents[0].Screen); err != nil {
		return err
	}
	if names := documents[0].Names; names != nil && names.Verdict != "verifies" {
		return &toldError{errors.New("the snapshot does not verify")}
	}
	return nil
}

func (f *inspectFlags) compare(command *cobra.Command, a, b *inspect.Document) error {
	outcome, differences := inspect.Diff(a, b)
	result := struct {
		Outcome     inspect.Outcome      `json:"outcome"`
		Differences []inspect.Difference `json:"differences"`
	}{outcome, append([]inspect.Difference{}, differences...)}
	screen := func() string {
		var lines strings.Builder
		fmt.Fprintf(&lines, "%s\n", outcome)
		for _, d := range differences {
			mark := "~"
			if d.Looks {
				mark = " "
			}
			fmt.Fprintf(&lines, "%s %s: %s\n", mark, d.What, d.Text)
		}
		return lines.String()
	}
	if err := print(command.OutOrStdout(), f.form, result, screen); err != nil {
		return err
	}
	if outcome == inspect.Different {
		return &toldError{errors.New("different")}
	}
	return nil
}

func (f *inspectFlags) read(command *cobra.Command, access access, arg string) (*inspect.Document, error) {
	text, err := f.text(command, access, arg)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) { // a body of /config/<pool>.gz
		if text, err = contents.Inflate(text, contents.MaxInflated); err != nil {
			return nil, badInput("%w", err)
		}
	}
	return inspect.Read(stub.Unwrap(text))
}

func (f *inspectFlags) text(command *cobra.Command, access access, arg string) ([]byte, error) {
	if !isURL(arg) {
		return readFile(arg, command.InOrStdin())
	}
	o := fetch.Options{CA: access.ca(), Header: http.Header{}, Deadline: f.deadline}
	o.Header.Set("Accept", "application/vnd.coreos.ignition+json;version=3.6.0, */*;q=0.1")
	if name, value := access.header(); name != "" {
		o.Header.Set(name, value)
	}
	fetcher, err := fetch.New(o)
	if err != nil {
		return nil, err
	}
	defer fetcher.Close()
	result, err := fetcher.Get(command.Context(), fetch.Request{URLs: []string{arg}})
	if err != nil {
		return nil, err
	}
	return result.Body, nil
}

func shownArgument(arg string) string {
	if isURL(arg) {
		return fetch.Bare(arg)
	}
	return arg
}
