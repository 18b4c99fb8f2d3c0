// SPDX-License-Identifier: Apache-2.0

package house

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	"github.com/mcsnap/mcsnap/e2e/changes"
	"github.com/mcsnap/mcsnap/e2e/commands"
	"github.com/mcsnap/mcsnap/e2e/commands/tree"
	"github.com/mcsnap/mcsnap/e2e/deploy"
	"github.com/mcsnap/mcsnap/e2e/example"
	"github.com/mcsnap/mcsnap/e2e/reference"
)

// generators lists whatever in the repository is made by a program: the folder (or the one file), what the program would
// write there now (names relative to the folder), and the command that writes it.
var generators = []struct {
	folder string
	make   func() (map[string][]byte, error)
	remedy string
}{
	{"e2e/example/cluster", example.Cluster, "go generate ./e2e/example"},
	{"deploy/overlays/kubernetes/crds.yaml", func() (map[string][]byte, error) {
		text, err := deploy.CRDs()
		return map[string][]byte{".": text}, err
	}, "go generate ./e2e/deploy"},
	{"CHANGELOG.md", func() (map[string][]byte, error) {
		text, err := changes.Render(os.DirFS(filepath.Join(top, "docs/changes")))
		return map[string][]byte{".": text}, err
	}, "go generate ./e2e/changes"},
	{"docs/reference.md", func() (map[string][]byte, error) {
		programs, err := programs()
		if err != nil {
			return nil, err
		}
		metrics, err := reference.Metrics(filepath.Join(top, "mcs"))
		return map[string][]byte{".": reference.Render(programs, metrics)}, err
	}, "go generate ./e2e/reference"},
}

// programs are the commands as the programs tell them, asked once.
var programs = sync.OnceValues(func() ([]*tree.Command, error) { return commands.Trees(context.Background()) })
