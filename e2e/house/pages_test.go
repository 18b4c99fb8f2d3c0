// SPDX-License-Identifier: Apache-2.0

package house

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/pages"
	"github.com/mcsnap/mcsnap/e2e/reference"
)

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)[A-Z]\w*)\(`)

// What the documents link to, show and name is there.
func TestDocuments(t *testing.T) {
	programs, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := reference.Metrics(filepath.Join(top, "mcs"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range metrics {
		known[m.Name] = true
	}
	variables := map[string]bool{}
	for _, program := range programs {
		for _, command := range program.All() {
			for _, f := range command.Flags {
				variables[f.Env] = true
			}
		}
	}
	tests := map[string]bool{}
	there := map[string]bool{".": true}
	var documents []*pages.Page
	for _, f := range readFiles(t, top) {
		for folder := f.Path; folder != "."; folder = path.Dir(folder) {
			there[folder] = true
		}
		if strings.HasSuffix(f.Path, "_test.go") {
			for _, m := range testFunction.FindAllSubmatch(f.Text, -1) {
				tests[string(m[1])] = true
			}
		}
		if strings.HasSuffix(f.Path, ".md") {
			documents = append(documents, pages.Read(f.Path, f.Text))
		}
	}
	for rule, faults := range map[string][]string{
		"links lead somewhere":         pages.Links(documents, func(path string) bool { return there[path] }),
		"blocks are what they claim":   pages.Blocks(documents),
		"shown command lines are good": pages.CommandLines(documents, programs),
		"examples in --help are good":  pages.Examples(programs),
		"documents are in the index":   append(pages.Index(documents, "docs/README.md"), pages.Index(documents, "docs/decisions/README.md")...),
		"named metrics are there":      pages.Metrics(documents, known),
		"named tests are there":        pages.Tests(documents, tests),
		"named variables are there":    pages.Variables(documents, variables),
	} {
		t.Run(rule, func(t *testing.T) {
			for _, fault := range faults {
				t.Error(fault)
			}
		})
	}
}
