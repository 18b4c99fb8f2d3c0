// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/specver"
)

// docs/openshift.md names every file that is added, with its mode.
func TestDocsNameEveryFile(t *testing.T) {
	text, err := os.ReadFile("../../docs/openshift.md")
	if err != nil {
		t.Fatal(err)
	}
	body, err := compose.Compose(everything(load(t, "testdata/files.yaml").snapshot), specver.V3_5)
	if err != nil {
		t.Fatal(err)
	}
	nodes := open(t, body.JSON, specver.V3_5).Nodes
	for _, p := range added {
		row := fmt.Sprintf("| `%s` | %04o |", p, nodes[p].Mode)
		if p == "/etc/kubernetes/kubelet-ca.crt" {
			row = "| `" + p + "` | as rendered, else 0644 |"
		}
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/openshift.md has no row that begins %s", row)
		}
	}
}
