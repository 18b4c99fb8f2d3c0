// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// UsageError says that a command of this package was called wrongly.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text + "; see --help" }

// command is `config`, which shows and judges what the file and the environment say.
func (p *program) command() *cobra.Command {
	name := p.root.Name()
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Judge and show the settings in a file and in the environment",
		Long: `Every flag of every command may be said in a file and in the environment too. The command line wins over the
environment, the environment over the file. docs/reference.md lists all of them. In the file, keys are called after flags,
in sections called after commands:

  state-dir: /var/lib/` + name + `
  serve:
    metrics-listen: ":9623"
    external-url: ["https://api-int.example.com:22623"]

The variables are called after the same: ` + p.variable([]string{"serve", "external-url"}) + `, a list with commas. A key or a variable that no flag has
is an error.`,
		Example: "  " + name + " config check --config /etc/" + name + "/config.yaml\n  " + name + " config show serve --config /etc/" + name + "/config.yaml",
		Args:    func(_ *cobra.Command, args []string) error { return noCommand("config", args) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.checkCommand(), p.showCommand())
	return cmd
}

func noCommand(of string, args []string) error {
	if len(args) > 0 {
		return &UsageError{fmt.Sprintf("unknown command %q for %s", args[0], of)}
	}
	return nil
}

// report is what config check finds.
type report struct {
	Settings int       `json:"settings"` // that are said
	Judged   []string  `json:"judged"`   // commands
	Problems []Problem `json:"problems"`
}

func (p *program) checkCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "check [COMMAND]",
		Short: "Say what is wrong with the settings in a file and in the environment",
		Long: `Read the settings as a command would, and say all that is wrong with them: keys and variables that no flag has, values
of the wrong kind, and what the commands they are for would refuse at their start. Nothing is started, and the files that
settings name are not opened. A COMMAND is judged even if nothing is said for it.

Exit codes: 0 nothing is wrong, 2 wrong usage, 3 something is, and is listed.`,
		Example: "  " + p.root.Name() + " config check --config /etc/" + p.root.Name() + "/config.yaml && echo good",
		RunE: func(cmd *cobra.Command, args []string) error {
			var wanted *cobra.Command
			if len(args) > 0 {
				var err error
				if wanted, err = p.named(args); err != nil {
					return err
				}
			}
			found := p.check(wanted)
			if err := print(cmd.OutOrStdout(), output, found, found.write); err != nil {
				return err
			}
			if len(found.Problems) > 0 {
				return &Error{[]Problem{{Where: "settings", Problem: fmt.Sprintf("%d problem(s); mend what is listed", len(found.Problems))}}}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// check judges what is said, and lets the commands judge it that it is for.
func (p *program) check(wanted *cobra.Command) report {
	said, problems := p.said()
	found := report{Settings: len(said), Judged: []string{}, Problems: append([]Problem{}, problems...)}
	if len(problems) > 0 {
		return found // a command takes all or nothing
	}
	for _, c := range p.commands {
		section := sectionOf(c)
		isSaid := slices.ContainsFunc(slices.Collect(maps.Keys(said)), func(key string) bool { return strings.HasPrefix(key, section+".") })
		if c != wanted && (wanted != nil || !isSaid) {
			continue
		}
		found.Judged = append(found.Judged, strings.ReplaceAll(section, ".", " "))
		if err := c.PreRunE(c, nil); err != nil {
			problem := strings.TrimSuffix(err.Error(), "; see --help")
			found.Problems = append(found.Problems, Problem{Where: strings.ReplaceAll(section, ".", " "), Problem: problem})
		}
	}
	return found
}

func (r report) write(w io.Writer) {
	for _, problem := range r.Problems {
		fmt.Fprintln(w, problem)
	}
	if len(r.Problems) == 0 {
		fmt.Fprintf(w, "good: %d settings; judged as for a start of: %s\n", r.Settings, orNothing(strings.Join(r.Judged, ", ")))
	}
}

// effective is one setting of a command as the command would have it.
type effective struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	From  string `json:"from"` // "default", the variable, or the file and line
}

func (p *program) showCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "show [COMMAND]",
		Short: "Show the settings a command would have, each with where it comes from",
		Long: `Show the settings that a command would have if it was started now without flags, each with where it comes from: the
default, a variable of the environment, or a line of the file. Without a COMMAND, of all. A password in a URL is not shown;
secrets are in files, which settings name.`,
		Example: "  " + p.root.Name() + " config show serve --config /etc/" + p.root.Name() + "/config.yaml\n  " + p.root.Name() + " config show store prune -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			said, problems := p.said()
			if len(problems) > 0 {
				return &Error{problems}
			}
			shown := p.settings
			if len(args) > 0 {
				c, err := p.named(args)
				if err != nil {
					return err
				}
				shown = slices.DeleteFunc(slices.Clone(shown), func(s *setting) bool { return !s.of(c) })
			}
			list := []effective{}
			for _, s := range shown {
				e, err := s.effective(said)
				if err != nil {
					return err
				}
				list = append(list, e)
			}
			return print(cmd.OutOrStdout(), output, list, func(w io.Writer) { writeSettings(w, list) })
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// of reports whether a command has the setting.
func (s *setting) of(c *cobra.Command) bool {
	f := c.Flags().Lookup(s.key[strings.LastIndex(s.key, ".")+1:])
	return f != nil && slices.Contains(s.flags, f)
}

func (s *setting) effective(said map[string]value) (effective, error) {
	f, from := s.flags[0], "default"
	if v, ok := said[s.key]; ok {
		from = v.from
		if err := kindOf(f).set(f, v); err != nil {
			return effective{}, err
		}
	}
	return effective{s.key, kindOf(f).shown(f), from}, nil
}

func writeSettings(w io.Writer, list []effective) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KEY\tVALUE\tFROM")
	for _, e := range list {
		text := fmt.Sprint(e.Value)
		if elements, isList := e.Value.([]string); isList {
			text = strings.Join(elements, ",")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", e.Key, orNothing(text), e.From)
	}
	_ = table.Flush() // what it writes to has told its error by then
}

// named returns the command that words name.
func (p *program) named(words []string) (*cobra.Command, error) {
	for _, c := range p.commands {
		if sectionOf(c) == strings.Join(words, ".") {
			return c, nil
		}
	}
	var names []string
	for _, c := range p.commands {
		names = append(names, strings.ReplaceAll(sectionOf(c), ".", " "))
	}
	return nil, &UsageError{fmt.Sprintf("no command %q has settings; name one of %s", strings.Join(words, " "), strings.Join(names, ", "))}
}

// sectionOf is the section of a command in the file.
func sectionOf(c *cobra.Command) string {
	return strings.Join(strings.Fields(c.CommandPath())[1:], ".")
}

func orNothing(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// print writes a value in the format that was asked for.
func print(w io.Writer, format string, value any, text func(io.Writer)) error {
	switch format {
	case "text":
		text(w)
		return nil
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(value)
	}
	return &UsageError{"--output " + quoted(format) + ": use text or json"}
}
