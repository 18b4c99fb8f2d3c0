// SPDX-License-Identifier: Apache-2.0

package house

import (
	"os"
	"path/filepath"

	"github.com/mcsnap/mcsnap/e2e/changes"
	"github.com/mcsnap/mcsnap/e2e/example"
)

// generators lists whatever in the repository is made by a program: the folder (or the one file), what the program would
// write there now (names relative to the folder), and the command that writes it.
var generators = []struct {
	folder string
	make   func() (map[string][]byte, error)
	remedy string
}{
	{"e2e/example/cluster", example.Cluster, "go generate ./e2e/example"},
	{"CHANGELOG.md", func() (map[string][]byte, error) {
		text, err := changes.Render(os.DirFS(filepath.Join(top, "docs/changes")))
		return map[string][]byte{".": text}, err
	}, "go generate ./e2e/changes"},
}
