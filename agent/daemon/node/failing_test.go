// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mcsnap/mcsnap/agent/daemon/node"
	"github.com/mcsnap/mcsnap/e2e/kube"
)

// Field case 9: an update that fails is tried again now and then and not at every change of the Node, of which its own
// annotations are one; a config that the pool asks for instead is followed at once.
func TestAnUpdateThatFails(t *testing.T) {
	cluster := kube.Start(t, kube.Options{Nodes: []string{"n1"}})
	allow(t, cluster)
	bad := generation(2)
	files, _, _ := unstructured.NestedSlice(bad, "spec", "config", "storage", "files")
	files = append(files, map[string]any{"path": "/etc/theirs", "contents": map[string]any{"source": "data:,S3CR3T"}}) // and no overwrite
	if err := unstructured.SetNestedSlice(bad, files, "spec", "config", "storage", "files"); err != nil {
		t.Fatal(err)
	}
	cluster.Apply(kube.Configs, "", bad)
	cluster.Apply(kube.Configs, "", generation(3))

	m := provision(t, cluster, "n1", generation(1))
	m.write("etc/theirs", "theirs", 0o644)
	m.register()
	m.run()
	m.desire("rendered-worker-2")
	m.becomes(node.Degraded, "rendered-worker-1", "/etc/theirs: a file that no config put there")
	before := patches(m)
	const rounds = 10
	time.Sleep(rounds * tick)
	// Working and Degraded for each try, of which there is one a tick.
	if made := patches(m) - before; made > 2*rounds+2 {
		t.Errorf("the node was annotated %d times in %d rounds of trying again", made, rounds)
	} else {
		t.Logf("bench: %d annotations in %d rounds of trying again", made, rounds)
	}
	m.has("generation1")
	m.desire("rendered-worker-3")
	m.becomes(node.Done, "rendered-worker-3", "")
	m.has("generation3")

	// And it recovers by itself once the node is mended.
	m.desire("rendered-worker-2")
	m.becomes(node.Degraded, "rendered-worker-3", "/etc/theirs")
	if err := os.Remove(filepath.Join(m.dir, "etc/theirs")); err != nil {
		t.Fatal(err)
	}
	m.becomes(node.Done, "rendered-worker-2", "")
	if strings.Contains(m.cluster.Audit(), "S3CR3T") {
		t.Error("a file's content is in the audit log")
	}
}

// patches counts how often the node annotated itself.
func patches(m *machine) (made int) {
	m.Helper()
	for line := range strings.Lines(m.cluster.Audit()) {
		var event struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource string }
		}
		if json.Unmarshal([]byte(line), &event) == nil && event.Verb == "patch" && event.ObjectRef.Resource == "nodes" && event.User.Username == "system:node:"+m.name {
			made++
		}
	}
	return made
}
