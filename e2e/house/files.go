// SPDX-License-Identifier: Apache-2.0

package house

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
)

// Licence is the line every file of code carries.
const Licence = "SPDX-License-Identifier: Apache-2.0"

// MaxLines is where a file of code is more than one thought. A generated file may be longer.
const MaxLines = 350

// File is one file of the repository; Path is relative to the top and has slashes.
type File struct {
	Path string
	Text []byte
}

// Beginnings returns the files of code (Go, scripts, makefiles) that lack the licence line, and the Go files that are
// too long.
func Beginnings(files []File) (faults []string) {
	for _, f := range files {
		lines := bytes.SplitAfter(f.Text, []byte("\n"))
		switch {
		case path.Ext(f.Path) == ".go":
			if string(lines[0]) != "// "+Licence+"\n" || len(lines) < 2 || string(lines[1]) != "\n" {
				faults = append(faults, fmt.Sprintf("%s: must begin with `// %s` and an empty line", f.Path, Licence))
			}
			if count := bytes.Count(f.Text, []byte("\n")); count > MaxLines && !isGenerated(f.Text) {
				faults = append(faults, fmt.Sprintf("%s: %d lines, more than %d; split it by thought", f.Path, count, MaxLines))
			}
		case bytes.HasPrefix(f.Text, []byte("#!")), path.Base(f.Path) == "Makefile":
			if !bytes.Contains(bytes.Join(lines[:min(3, len(lines))], nil), []byte("# "+Licence)) {
				faults = append(faults, fmt.Sprintf("%s: `# %s` is missing from its first lines", f.Path, Licence))
			}
		}
	}
	return faults
}

// Unfinished returns the lines that put work off, and the tests that can pass without running.
func Unfinished(files []File) (faults []string) {
	// Spelled in halves, so that this file is not its own first fault.
	marks := []string{"TO" + "DO", "FIX" + "ME", "X" + "XX:"}
	skips := []string{"t.Sk" + "ip(", "t.Sk" + "ipf(", "t.Sk" + "ipNow(", "b.Sk" + "ip("}
	for _, f := range files {
		for number, line := range strings.Split(string(f.Text), "\n") {
			for _, mark := range marks {
				if strings.Contains(line, mark) {
					faults = append(faults, fmt.Sprintf("%s:%d: %s: do it, or file it where people look", f.Path, number+1, mark))
				}
			}
			if !strings.HasSuffix(f.Path, "_test.go") {
				continue
			}
			for _, skip := range skips {
				if strings.Contains(line, skip) {
					faults = append(faults, fmt.Sprintf("%s:%d: a test that skips proves nothing; fail, and name what is missing", f.Path, number+1))
				}
			}
		}
	}
	return faults
}

// plainWrites leave a half-written or lost file behind when the power fails.
var plainWrites = []string{"WriteFile", "Create", "Rename"}

// DurableWrites returns the calls in the product's own code that write a file other than through snapshot/durable.
func DurableWrites(files []File) (faults []string) {
	for _, f := range files {
		folder, _, _ := strings.Cut(f.Path, "/")
		if path.Ext(f.Path) != ".go" || strings.HasSuffix(f.Path, "_test.go") || strings.HasPrefix(f.Path, "snapshot/durable/") ||
			!slices.Contains([]string{"snapshot", "ignition-stub", "mcs", "agent"}, folder) {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, f.Path, f.Text, parser.SkipObjectResolution)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := call.X.(*ast.Ident); ok && pkg.Name == "os" && slices.Contains(plainWrites, call.Sel.Name) {
				faults = append(faults, fmt.Sprintf("%v: os.%s can lose the file in a power cut; use snapshot/durable", set.Position(call.Pos()), call.Sel.Name))
			}
			return true
		})
	}
	return faults
}

// Stale compares what a generator makes now with what the repository holds under one folder, file by file.
func Stale(made map[string][]byte, held []File, remedy string) (faults []string) {
	seen := map[string]bool{}
	for _, f := range held {
		seen[f.Path] = true
		if want, ok := made[f.Path]; !ok {
			faults = append(faults, fmt.Sprintf("%s: no generator makes it any more; remove it or run `%s`", f.Path, remedy))
		} else if !bytes.Equal(want, f.Text) {
			faults = append(faults, fmt.Sprintf("%s: stale; run `%s`", f.Path, remedy))
		}
	}
	for name := range made {
		if !seen[name] {
			faults = append(faults, fmt.Sprintf("%s: missing; run `%s`", name, remedy))
		}
	}
	slices.Sort(faults)
	return faults
}

func isGenerated(text []byte) bool {
	return bytes.Contains(text[:min(len(text), 500)], []byte("DO NOT EDIT"))
}
