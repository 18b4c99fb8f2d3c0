// SPDX-License-Identifier: Apache-2.0

// Package reference makes docs/reference.md: every command, flag, setting and metric, taken from the programs and their
// code. It explains nothing that the code does not say.
package reference

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcsnap/mcsnap/e2e/commands/tree"
)

//go:generate go run ./write ../../docs/reference.md

const head = `# Reference

Every command, flag, setting and metric. Made of the code by ` + "`go generate ./e2e/reference`" + `; a test fails when it is stale.

## Where a setting is said

Every flag of ` + "`mcs`" + ` may be said in three places. The command line wins over the environment, the environment over the file,
the file over the default.

` + "```yaml" + `
# mcs serve --config /etc/mcs/config.yaml, or MCS_CONFIG=/etc/mcs/config.yaml
state-dir: /var/lib/mcs          # at the top: the same for every command
serve:                           # a section for each command, keys called after its flags
  tls-cert: /etc/mcs/tls.crt
  tls-key: /etc/mcs/tls.key
  external-url: ["https://api-int.example.com:22623"]
  agent: ["amd64=/usr/local/bin/mcsnap-agent"]
store:
  prune:
    keep-served: 96h
` + "```" + `

In the environment a list is separated by commas: ` + "`MCS_SERVE_ALLOW_CIDR=10.0.0.0/16,fd00::/8`" + `. A variable that is set and empty says
an empty text or list.

Nothing is passed over. A key or a variable beginning with ` + "`MCS_`" + ` that no flag has (but for those that Kubernetes sets for a
Service called mcs), a key that stands twice, and a value of the wrong kind end the program before it does anything, with
code 3 and the place, the nearest name and the remedy. ` + "`mcs config check`" + ` lists all of it and judges what commands would
refuse; ` + "`mcs config show`" + ` says what a command would have and where each value comes from. The file is read at the start;
no setting is a secret, files with secrets are named.

The programs of the node have flags alone. They are run by units of ours or by people, and what a machine has to know
(servers, CA) is in ` + "`/etc/mcsnap/agent.yaml`" + `, which the server writes into its config.
`

// Render makes the document.
func Render(programs []*tree.Command, metrics []Metric) []byte {
	var out bytes.Buffer
	out.WriteString(head)
	for _, program := range programs {
		for path, c := range program.All() {
			if isOurs(path, c) {
				writeCommand(&out, path, c, program)
			}
		}
	}
	out.WriteString("\n## Metrics\n\nOf `mcs`, on `--metrics-listen`, besides those of the Go runtime and the process.\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range metrics {
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, codes(m.Labels), cell(m.Help))
	}
	return out.Bytes()
}

// isOurs reports whether a command is not one that cobra gives every program.
func isOurs(path string, c *tree.Command) bool {
	words := strings.Fields(path)
	return !c.Hidden && (len(words) < 2 || words[1] != "help" && words[1] != "completion")
}

func writeCommand(out *bytes.Buffer, path string, c, program *tree.Command) {
	flags := slices.DeleteFunc(slices.Clone(c.Flags), func(f tree.Flag) bool {
		inherited := c != program && program.Flag("--"+f.Name) != nil
		return f.Name == "help" || f.Name == "version" || f.Hidden || inherited
	})
	if len(flags) == 0 && !c.Runs {
		return
	}
	fmt.Fprintf(out, "\n## %s\n\n%s.\n", path, c.Short)
	if len(flags) == 0 {
		return
	}
	settable := slices.ContainsFunc(flags, func(f tree.Flag) bool { return f.Env != "" })
	if settable {
		out.WriteString("\n| flag | variable | key | default | meaning |\n|---|---|---|---|---|\n")
	} else {
		out.WriteString("\n| flag | default | meaning |\n|---|---|---|\n")
	}
	for _, f := range flags {
		name := "`--" + f.Name + "`"
		if f.Short != "" {
			name = "`-" + f.Short + "`, " + name
		}
		meaning, value := defaulted(f)
		if settable {
			fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", name, code(f.Env), code(f.Key), value, meaning)
		} else {
			fmt.Fprintf(out, "| %s | %s | %s |\n", name, value, meaning)
		}
	}
}

var told = regexp.MustCompile(`[ ;]*\(default:? ([^)]*)\)$`)

// defaulted is what a flag means and its default, which the meaning tells where the flag's own value stands for it.
func defaulted(f tree.Flag) (meaning, value string) {
	meaning = f.Meaning
	value = code(strings.Trim(f.Default, "[]"))
	if slices.Contains([]string{"", "0", "0s", "[]"}, f.Default) {
		value = ""
		if m := told.FindStringSubmatch(meaning); m != nil {
			meaning, value = strings.TrimSuffix(meaning, m[0]), cell(m[1])
		}
	}
	return cell(meaning), value
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

func codes(texts []string) string {
	var all []string
	for _, text := range texts {
		all = append(all, code(text))
	}
	return strings.Join(all, ", ")
}

// cell is a text that can stand in a table, and in which nothing is taken for HTML.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(strings.TrimSuffix(text, "."))
}
