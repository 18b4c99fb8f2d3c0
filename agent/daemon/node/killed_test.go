// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mcsnap/mcsnap/agent/daemon/node"
	"github.com/mcsnap/mcsnap/e2e/kube"
)

const kills = 100

// many is a generation with enough files that an update of them takes a while.
func many(i int) map[string]any {
	config := generation(i)
	files, _, _ := unstructured.NestedSlice(config, "spec", "config", "storage", "files")
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		files = append(files, map[string]any{
			"path": "/etc/many/" + name, "mode": int64(0o600), "overwrite": true,
			"contents": map[string]any{"source": "data:," + text1(config) + name},
		})
	}
	_ = unstructured.SetNestedSlice(config, files, "spec", "config", "storage", "files") // JSON that was just made
	return config
}

// killed has the daemon, as a program, killed at a random moment a hundred times while its pool moves on and on. In the end
// the node is at the last config, every file of it, and has never read the one it was born with.
func killed(t *testing.T, cluster *kube.Cluster, name string) {
	program := filepath.Join(t.TempDir(), "mcsnap-daemon")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/mcsnap-daemon").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i := 11; i <= 14; i++ {
		cluster.Apply(kube.Configs, "", many(i))
	}
	m := provision(t, cluster, name, generation(1))
	m.register()
	kubeconfig := cluster.Kubeconfig(cluster.Node(name))
	start := func() (*exec.Cmd, *bytes.Buffer) {
		log := &bytes.Buffer{}
		cmd := exec.Command(program, "run", "--root", m.dir, "--kubeconfig", kubeconfig, "--node", name, "--drift-interval=200ms")
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, log
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // when to kill is no secret
	t.Logf("seed %d", seed)
	cut := 0
	for i := range kills {
		m.desire([]string{"rendered-worker-11", "rendered-worker-12", "rendered-worker-13"}[i%3])
		cmd, _ := start()
		time.Sleep(100*time.Millisecond + time.Duration(random.IntN(350))*time.Millisecond)
		_ = cmd.Process.Kill() // it may have ended, which the wait tells
		_ = cmd.Wait()
		if _, err := os.Stat(filepath.Join(m.dir, "var/lib/mcsnap/update/journal.json")); err == nil {
			cut++
		}
	}
	m.desire("rendered-worker-14")
	cmd, log := start()
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	}()
	m.becomes(node.Done, "rendered-worker-14", "")
	m.has("generation14")
	for _, file := range []string{"a", "h"} {
		if text, err := os.ReadFile(filepath.Join(m.dir, "etc/many", file)); err != nil || string(text) != "generation14"+file {
			t.Errorf("/etc/many/%s: %q, %v", file, text, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(m.dir, "etc", "*", ".mcsnap-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	m.neverRead("rendered-worker-1")
	t.Logf("bench: killed %d times, %d of them in the middle of an update", kills, cut)
}
