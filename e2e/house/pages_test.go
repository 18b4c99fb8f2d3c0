// SPDX-License-Identifier: Apache-2.0

package house

import (
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/pages"
	"github.com/mcsnap/mcsnap/e2e/reference"
)

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
	there := map[string]bool{".": true}
	var documents []*pages.Page
	for _, f := range readFiles(t, top) {
		for folder := f.Path; folder != "."; folder = path.Dir(folder) {
			there[folder] = true
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
	} {
		t.Run(rule, func(t *testing.T) {
			for _, fault := range faults {
				t.Error(fault)
			}
		})
	}
}
