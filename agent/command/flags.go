// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/agent/root"
)

// Choice adds a flag that has one of a few values, offers them to shells, and has the command refuse any other. The
// meaning names them; the first is the default, "" among the values stands for none.
func Choice(cmd *cobra.Command, value *string, name, short, meaning string, values ...string) {
	cmd.Flags().StringVarP(value, name, short, values[0], meaning)
	values = slices.DeleteFunc(slices.Clone(values), func(value string) bool { return value == "" })
	if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // a flag of that name was just made
	}
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed(name) && !slices.Contains(values, *value) {
			return &UsageError{fmt.Errorf("--%s %s: use %s", name, *value, strings.Join(values, " or "))}
		}
		if before != nil {
			return before(cmd, args)
		}
		return nil
	}
}

// LogFormat adds the flag --log-format.
func LogFormat(cmd *cobra.Command, format *string) {
	Choice(cmd, format, "log-format", "", "`format` of the log on stderr: text or json", "text", "json")
}

// Logger logs in a format that LogFormat has let pass.
func Logger(format string, to io.Writer) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(to, nil))
	}
	return slog.New(slog.NewTextHandler(to, nil))
}

// Output adds the flag --output.
func Output(cmd *cobra.Command, output *string) {
	Choice(cmd, output, "output", "o", "`format`: text or json", "text", "json")
}

// Print writes a value as JSON, or as text in the command's own way, as Output has it.
func Print(cmd *cobra.Command, output string, value any, text func(io.Writer)) error {
	if output != "json" {
		text(cmd.OutOrStdout())
		return nil
	}
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

// Line writes one fact of a listing: what it is about, and what is so.
func Line(to io.Writer, about, format string, args ...any) {
	fmt.Fprintf(to, "%-12s %s\n", about, fmt.Sprintf(format, args...))
}

// AtRoot adds the flag --root to a program's topmost command, for all below it.
func AtRoot(root *cobra.Command, at *string) {
	root.PersistentFlags().StringVar(at, "root", "/", "`folder` that is the node's root")
	if err := root.MarkPersistentFlagDirname("root"); err != nil {
		panic(err) // a flag of that name was just made
	}
}

// WithRoot does something with a node's files.
func WithRoot(at string, do func(*root.Root) error) error {
	node, err := root.Open(at, nil)
	if err != nil {
		return &handoff.MachineError{Cause: err}
	}
	defer node.Close() //nolint:errcheck // a folder that was only opened
	return do(node)
}
