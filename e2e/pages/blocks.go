// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
	"mvdan.cc/sh/v3/syntax"
)

// languages are those that a block may claim, each with what finds fault with its text.
var languages = map[string]func(string) error{
	"sh":       shell,
	"console":  func(text string) error { return shell(strings.Join(prompted(text), "\n")) },
	"json":     readJSON,
	"yaml":     readYAML,
	"go":       readGo,
	"mermaid":  nothing,
	"text":     nothing,
	"promql":   nothing,
	"ini":      nothing, // units
	"":         nothing, // drawings, and what programs print
	"markdown": nothing,
}

// Blocks returns the blocks of code that are not of the language they claim.
func Blocks(all []*Page) (faults []string) {
	for _, p := range all {
		for _, b := range p.blocks {
			check, known := languages[b.language]
			if !known {
				faults = append(faults, fmt.Sprintf("%s:%d: a block in %q, which nothing here can check; use sh, console, json, yaml, go or text", p.Path, b.line, b.language))
				continue
			}
			if err := check(b.text); err != nil {
				faults = append(faults, fmt.Sprintf("%s:%d: this is no %s (the line counts from here): %v; mend it, or call it text", p.Path, b.line, b.language, err))
			}
		}
	}
	return faults
}

func nothing(string) error { return nil }

func shell(text string) error {
	_, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	return err
}

// prompted returns the commands that a session shows after its prompts, with the lines that go on after a backslash.
func prompted(text string) (commands []string) {
	goesOn := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		command, isCommand := strings.CutPrefix(line, "$ ")
		if !isCommand {
			command, isCommand = strings.CutPrefix(line, "# ")
		}
		switch {
		case goesOn && !isCommand:
			commands[len(commands)-1] += "\n" + line
		case isCommand:
			commands = append(commands, command)
		default:
			continue
		}
		goesOn = strings.HasSuffix(line, `\`)
	}
	return commands
}

func readJSON(text string) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	for {
		var value any
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func readYAML(text string) error {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var value any
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// readGo takes a file, declarations, or what may stand in a function.
func readGo(text string) error {
	var first error
	for _, whole := range []string{"package p; func f() {\n" + text + "\n}", "package p\n" + text, text} {
		_, err := parser.ParseFile(token.NewFileSet(), "", whole, parser.SkipObjectResolution)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}
