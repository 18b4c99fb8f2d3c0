// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"mvdan.cc/sh/v3/syntax"

	"github.com/mcsnap/mcsnap/e2e/commands/tree"
)

// CommandLines returns the command lines of our programs that the programs would not know, in blocks of code and within
// the text, and the flags named in the text that no program has.
func CommandLines(all []*Page, programs []*tree.Command) (faults []string) {
	for _, p := range all {
		say := func(line int, problem string) {
			faults = append(faults, fmt.Sprintf("%s:%d: %s", p.Path, line, problem))
		}
		for _, b := range p.blocks {
			for _, problem := range unknown(b.commands(), programs) {
				say(b.line, problem)
			}
		}
		for _, span := range p.spans {
			if flag, isFlag := bareFlag(span.text); isFlag && !anyHas(programs, flag) && !theirs[flag] {
				say(span.line, fmt.Sprintf("no program of ours has %s; name what it is called now (docs/reference.md), or show it with the program whose flag it is", flag))
			}
			if first, _, more := strings.Cut(span.text, " "); more && root(first, programs) != nil {
				for _, problem := range unknown(span.text, programs) {
					say(span.line, problem)
				}
			}
		}
	}
	return faults
}

// Examples returns the command lines in the programs' own help that the programs would not know.
func Examples(programs []*tree.Command) (faults []string) {
	for _, program := range programs {
		for path, c := range program.All() {
			if err := shell(c.Example); err != nil {
				faults = append(faults, fmt.Sprintf("%s --help: the examples are no shell: %v", path, err))
			}
			for _, problem := range unknown(c.Example, programs) {
				faults = append(faults, fmt.Sprintf("%s --help: %s", path, problem))
			}
		}
	}
	return faults
}

// theirs are flags of other programs that the documents name without their program.
var theirs = map[string]bool{}

// commands is what of a block a shell would be given.
func (b block) commands() string {
	switch b.language {
	case "sh":
		return b.text
	case "console":
		return strings.Join(prompted(b.text), "\n")
	case "":
		if shown := prompted(b.text); len(shown) > 0 {
			return strings.Join(shown, "\n")
		}
		return b.text // a drawing names no program at the beginning of a line, and what is no shell is passed over
	}
	return ""
}

// unknown finds the calls of our programs in a script, and says what of them the programs do not have.
func unknown(script string, programs []*tree.Command) (problems []string) {
	parsed, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return nil // Blocks has said so where it claims to be shell
	}
	syntax.Walk(parsed, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		var args []string
		for _, word := range call.Args {
			args = append(args, plain(word))
		}
		for len(args) > 0 && slices.Contains([]string{"sudo", "exec", "time", "nohup"}, args[0]) {
			args = args[1:]
		}
		if len(args) > 0 {
			if program := root(args[0], programs); program != nil {
				problems = append(problems, judge(program, args[1:])...)
			}
		}
		return true
	})
	return problems
}

// plain is a word as a program gets it, with "…" for what only the shell knows.
func plain(word *syntax.Word) string {
	var b strings.Builder
	var write func(parts []syntax.WordPart)
	write = func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch part := part.(type) {
			case *syntax.Lit:
				b.WriteString(part.Value)
			case *syntax.SglQuoted:
				b.WriteString(part.Value)
			case *syntax.DblQuoted:
				write(part.Parts)
			default:
				b.WriteString("…")
			}
		}
	}
	write(word.Parts)
	return b.String()
}

func root(name string, programs []*tree.Command) *tree.Command {
	for _, program := range programs {
		if path.Base(name) == program.Name {
			return program
		}
	}
	return nil
}

// judge follows a command line through a program's commands.
func judge(at *tree.Command, args []string) (problems []string) {
	path := at.Name
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--":
			return problems
		case strings.HasPrefix(arg, "-") && arg != "-":
			written, value, given := strings.Cut(arg, "=")
			flag := at.Flag(written)
			if flag == nil {
				problems = append(problems, fmt.Sprintf("%s has no flag %s; the nearest is --%s", path, written, nearest(written, flagNames(at))))
				continue
			}
			if !given && !flag.Alone && len(args) > 0 {
				value, args, given = args[0], args[1:], true
			}
			if given && len(flag.Values) > 0 && isPlain(value) && !slices.Contains(flag.Values, value) {
				problems = append(problems, fmt.Sprintf("%s %s %s: use one of %s", path, written, value, strings.Join(flag.Values, ", ")))
			}
		case len(at.Commands) > 0 && isPlain(arg):
			sub := at.Sub(arg)
			if sub == nil {
				return append(problems, fmt.Sprintf("%s has no command %s; the nearest is %s", path, arg, nearest(arg, commandNames(at))))
			}
			at, path = sub, path+" "+arg
		}
	}
	return problems
}

// isPlain reports whether a word stands for itself, and not for what a reader or a shell puts in its place.
func isPlain(word string) bool {
	return word != "" && word == strings.ToLower(word) && !strings.ContainsAny(word, "…<[|")
}

func bareFlag(span string) (flag string, ok bool) {
	if !strings.HasPrefix(span, "--") || len(span) < 4 {
		return "", false
	}
	end := strings.IndexAny(span, " =…[")
	if end < 0 {
		return span, true
	}
	return span[:end], end > 3
}

func anyHas(programs []*tree.Command, flag string) bool {
	for _, program := range programs {
		for _, c := range program.All() {
			if c.Flag(flag) != nil {
				return true
			}
		}
	}
	return false
}

func flagNames(c *tree.Command) map[string]bool {
	names := map[string]bool{}
	for _, f := range c.Flags {
		names[f.Name] = true
	}
	return names
}

func commandNames(c *tree.Command) map[string]bool {
	names := map[string]bool{}
	for _, sub := range c.Commands {
		names[sub.Name] = true
	}
	return names
}

// nearest is the known name with the fewest letters to change, the first by the alphabet of several.
func nearest(name string, known map[string]bool) string {
	best := ""
	for candidate := range known {
		switch d, b := levenshtein.ComputeDistance(name, candidate), levenshtein.ComputeDistance(name, best); {
		case best == "", d < b, d == b && candidate < best:
			best = candidate
		}
	}
	return best
}
