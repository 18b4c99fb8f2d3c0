// SPDX-License-Identifier: Apache-2.0

// Package house holds the rules of this repository that a machine can check: which folder may import which, what may
// stand at the top level, and how a file begins. Each rule is a function from what it looks at to the list of faults;
// the tests run them on the repository itself, and on bad input, so that a rule which can no longer fail is noticed.
// It says nothing about what the code does.
package house

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Module is the import path of the top folder.
const Module = "github.com/mcsnap/mcsnap"

// arrows says which packages of ours a package under a folder may import, besides those under the same folder. A
// package is ruled by the longest entry that covers it. An entry ending in "!" covers that one package alone.
var arrows = map[string][]string{
	// What a daemon's author imports stays small.
	"snapshot!":         {"snapshot/contents"},
	"snapshot/contents": {},
	"snapshot":          {"snapshot"},
	"snapshot/durable":  {},
	"systemd":           {},
	"ignition-stub":     {"snapshot"},
	"mcs":               {"snapshot", "systemd"},
	"agent":             {"snapshot", "ignition-stub/fetch"},
	"agent/cmd":         {"agent", "snapshot", "ignition-stub/fetch"},
	"ignition-stub/cmd": {"ignition-stub", "snapshot"},
	"mcs/cmd":           {"mcs", "snapshot", "systemd"},
	"deploy":            {},
	"e2e":               {"snapshot", "systemd", "ignition-stub", "mcs", "agent", "deploy"},
}

// forbidden lists what a package must not even depend on indirectly.
var forbidden = map[string][]string{
	"snapshot":               {"k8s.io/client-go"},
	"agent/cmd/mcsnap-agent": {"k8s.io/client-go", "k8s.io/apimachinery", "github.com/prometheus/client_golang"},
}

// notUsed lists what a package must not import itself. (The data URL library has net/http for one function that looks
// at bytes, so a rule on what is linked would say nothing about what is done.)
var notUsed = map[string][]string{
	"snapshot":          {"net", "net/http", "os/exec"},
	"snapshot/contents": {"net", "net/http", "os/exec"},
	"snapshot/lister":   {"net", "net/http", "os/exec"},
}

// Package is the part of `go list -json` that the rules look at.
type Package struct {
	ImportPath   string
	Name         string
	Doc          string
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Deps         []string
}

// Imports returns the packages that import against the arrows. Tests may besides import what is under e2e.
func Imports(packages []Package) (faults []string) {
	for _, p := range packages {
		for _, imported := range p.Imports {
			faults = append(faults, crossing(p.ImportPath, imported, false)...)
			if slices.Contains(notUsed[ours(p.ImportPath)], imported) {
				faults = append(faults, fmt.Sprintf("%s imports %s: it must work with what it is given", p.ImportPath, imported))
			}
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			faults = append(faults, crossing(p.ImportPath, imported, true)...)
		}
		for _, banned := range forbidden[ours(p.ImportPath)] {
			for _, dep := range p.Deps {
				if under(dep, banned) {
					faults = append(faults, fmt.Sprintf("%s depends on %s: %s must stay out of it", p.ImportPath, dep, banned))
				}
			}
		}
	}
	return faults
}

func crossing(from, to string, test bool) []string {
	to, isOurs := strings.CutPrefix(to, Module+"/")
	if !isOurs {
		return nil
	}
	from = ours(from)
	rule, allowed, known := ruleFor(from)
	switch {
	case !known:
		return []string{fmt.Sprintf("%s: no arrow starts there; the folders are fixed by docs/design.md", from)}
	case strings.Contains("/"+to+"/", "/cmd/"):
		return []string{fmt.Sprintf("%s imports %s: nothing imports a command", from, to)}
	case from == to, !strings.HasSuffix(rule, "!") && under(to, rule), test && under(to, "e2e"):
		return nil
	}
	for _, folder := range allowed {
		if under(to, folder) {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s imports %s: packages under %s may import %s", from, to, strings.TrimSuffix(rule, "!"), words(allowed))}
}

func ruleFor(pkg string) (rule string, allowed []string, known bool) {
	if allowed, exact := arrows[pkg+"!"]; exact {
		return pkg + "!", allowed, true
	}
	for folder := pkg; folder != "."; folder = path.Dir(folder) {
		if allowed, known := arrows[folder]; known {
			return folder, allowed, true
		}
	}
	return "", nil, false
}

func ours(importPath string) string { return strings.TrimPrefix(importPath, Module+"/") }

func under(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

func words(folders []string) string {
	if len(folders) == 0 {
		return "nothing of ours"
	}
	return "only " + strings.Join(folders, ", ")
}

// Comments returns the packages without a package comment, and those whose name says nothing.
func Comments(packages []Package) (faults []string) {
	for _, p := range packages {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			faults = append(faults, p.ImportPath+": no package comment; say what it is for and what it is not")
		}
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "types", "misc", "manager"}, p.Name) {
			faults = append(faults, fmt.Sprintf("%s: a package called %s can hold anything; name it after what it is for", p.ImportPath, p.Name))
		}
	}
	return faults
}

var topLevel = []string{
	"agent", "deploy", "docs", "e2e", "ignition-stub", "mcs", "snapshot", "systemd",
	"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md", "go.mod", "go.sum",
	".ci", ".git", ".gitattributes", ".gitignore",
}

// TopLevel returns the entries that do not belong at the top. Patterns are the lines of .gitignore.
func TopLevel(entries, patterns []string) (faults []string) {
	for _, entry := range entries {
		if slices.Contains(topLevel, entry) || slices.ContainsFunc(patterns, func(pattern string) bool {
			matched, err := path.Match(strings.Trim(pattern, "/"), entry)
			return err == nil && matched && pattern != ""
		}) {
			continue
		}
		faults = append(faults, entry+": does not belong at the top level; its contents go into one of the folders of docs/design.md")
	}
	return faults
}
