// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mcsnap/mcsnap/e2e/kube"
	"github.com/mcsnap/mcsnap/e2e/server"
)

// command runs mcs store and returns what it prints and how it ends.
func command(t *testing.T, s *server.Test, args ...string) (string, int) {
	t.Helper()
	stdout, stderr, code := server.Execute(t, append(append([]string{"store"}, args...), "--state-dir", s.State)...)
	if code != 0 {
		t.Logf("mcs store %s: %s", strings.Join(args, " "), strings.TrimSpace(stderr))
	}
	return stdout, code
}

// holds tells whether any file of the server's state has a text.
func holds(t *testing.T, s *server.Test, text string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(s.State, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		found = found || bytes.Contains(content, []byte(text)) || strings.Contains(path, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A config that was deleted by hand is exported and created again; one that nothing needs is pruned without a trace,
// with the server running. Field case 7: what is removed is gone.
func TestStoreCommands(t *testing.T) {
	c := kube.Start(t, kube.Options{})
	kubeconfig := c.Kubeconfig(c.Admin)
	s := newServer(t, c, kubeconfig)
	name := func(digit string) string { return "rendered-worker-" + strings.Repeat(digit, 32) }
	const canary = "S3CR3T-OLD"
	c.Apply(kube.Configs, "", kube.Rendered(name("a"), canary, 1000))
	c.Apply(kube.Configs, "", kube.Rendered(name("b"), "node", 1000))
	c.Apply(kube.Configs, "", kube.Rendered(name("c"), name("c")+" ", 1000))
	c.Apply(kube.Pools, "", kube.Pool("worker", name("c"), name("c"), 1))
	c.Apply(kube.Nodes, "", kube.Plain("Node", "n", nil))
	node := kube.Plain("Node", "n", nil)
	node["metadata"].(map[string]any)["annotations"] = map[string]any{"machineconfiguration.openshift.io/currentConfig": name("b")}
	c.Apply(kube.Nodes, "", node)
	s.Up()
	s.Ready()

	out, code := command(t, s, "ls", "-o", "json")
	var entries []struct{ Name, Digest, Pool string }
	if err := json.Unmarshal([]byte(out), &entries); err != nil || code != 0 || len(entries) != 3 {
		t.Fatalf("ls: %d %v %s", code, err, out)
	}
	if table, _ := command(t, s, "ls"); !strings.Contains(table, name("c")) || !strings.Contains(table, "worker") || strings.Contains(table, canary) {
		t.Errorf("ls prints\n%s", table)
	}

	// Deleted by hand, exported, created: the same digest, and the pool owns it.
	c.Delete(kube.Configs, name("c"))
	out, code = command(t, s, "export", name("c"), "--kubeconfig", kubeconfig)
	var exported unstructured.Unstructured
	if err := json.Unmarshal([]byte(out), &exported.Object); err != nil || code != 0 {
		t.Fatalf("export: %d %v %s", code, err, out)
	}
	created, err := c.Client.Resource(kube.Configs).Create(t.Context(), &exported, metav1.CreateOptions{FieldValidation: "Strict"})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := c.Client.Resource(kube.Pools).Get(t.Context(), "worker", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if owners := created.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != pool.GetUID() {
		t.Errorf("owners %v, want the pool %s", owners, pool.GetUID())
	}
	if again, _ := command(t, s, "ls", "-o", "json"); strings.Count(again, `"digest"`) != 3 {
		t.Errorf("created again, it has another digest:\n%s", again)
	}

	if _, code := command(t, s, "verify"); code != 0 {
		t.Errorf("verify ends with %d", code)
	}
	// The first is in the cluster no more, or the server would capture it again.
	c.Delete(kube.Configs, name("a"))
	prune := []string{"prune", "--kubeconfig", kubeconfig, "--keep-newest", "0"}
	out, code = command(t, s, prune...)
	for _, want := range []string{"remove   " + name("a"), "node n: currentConfig", "pool worker: spec"} {
		if !strings.Contains(out, want) {
			t.Errorf("prune says\n%s, want %q in it", out, want)
		}
	}
	if code != 0 || !holds(t, s, canary) {
		t.Errorf("a dry run ends with %d, or removes", code)
	}
	s.Says("deleted from the cluster; its snapshot stays", "rendered="+name("a"))
	if out, code = command(t, s, append(prune, "--yes")...); code != 4 || out != "" || !holds(t, s, canary) {
		t.Errorf("prune --yes beside the server, which nobody asked for, ends with %d\n%s", code, out)
	}
	if out, code = command(t, s, append(prune, "--yes", "--beside-server")...); code != 0 || !strings.Contains(out, "removed") {
		t.Errorf("prune --yes: %d\n%s", code, out)
	}
	if holds(t, s, canary) || holds(t, s, name("a")) {
		t.Error("what was removed is still in the state folder")
	}
	if out, _ := command(t, s, "ls", "-o", "json"); strings.Count(out, `"digest"`) != 2 {
		t.Errorf("left are\n%s", out)
	}

	// Damage is found, put aside, and captured again.
	digest := strings.TrimPrefix(entries[2].Digest, "sha256:")
	blob := filepath.Join(s.State, "store/blobs/sha256", digest[:2], digest+".json")
	if err := os.WriteFile(blob, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code = command(t, s, "verify"); code != 6 || !strings.Contains(out, "put aside") {
		t.Errorf("verify of a damaged store: %d\n%s", code, out)
	}
	// Nothing goes while the roots cannot be read.
	c.StopAPI()
	if out, code = command(t, s, append(prune, "--yes", "--beside-server")...); code != 5 || out != "" {
		t.Errorf("prune without the API server: %d\n%s", code, out)
	}
	if _, code := command(t, s, "show", "rendered-worker-nowhere"); code != 3 {
		t.Errorf("show of what is not there ends with %d", code)
	}
	c.StartAPI()
	s.Eventually("captured again", func() error {
		_, err := os.Stat(blob)
		return err
	})
}
