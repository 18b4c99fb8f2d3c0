// SPDX-License-Identifier: Apache-2.0

package house

import "github.com/mcsnap/mcsnap/e2e/example"

// generators lists whatever in the repository is made by a program: the folder, what the program would write there now
// (names relative to the folder), and the command that writes it.
var generators = []struct {
	folder string
	make   func() (map[string][]byte, error)
	remedy string
}{
	{"e2e/example/cluster", example.Cluster, "go generate ./e2e/example"},
}
