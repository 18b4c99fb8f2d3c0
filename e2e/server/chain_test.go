// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/example"
	"github.com/mcsnap/mcsnap/e2e/lab"
	"github.com/mcsnap/mcsnap/e2e/server"
	"github.com/mcsnap/mcsnap/e2e/witness"
	"github.com/mcsnap/mcsnap/snapshot"
)

// From a cluster's folder to a node that was handed over, with the built programs and the real Ignition: the digest on
// the node is that of what was rendered. Besides the example, OpenShift's own rendering is taken through it where it
// lies beside the repository.
func TestChain(t *testing.T) {
	clusters := map[string]string{"example": "../example/cluster"}
	const rendered = "../../../shared/fixtures/openshift-bootstrap"
	if _, err := os.Stat(rendered); err == nil {
		clusters["rendered by OpenShift"] = rendered
	}
	for name, cluster := range clusters {
		t.Run(name, func(t *testing.T) { chain(t, cluster) })
	}
}

func chain(t *testing.T, cluster string) {
	configs, err := filepath.Glob(filepath.Join(cluster, "machine-configs", "*.yaml"))
	if err != nil || len(configs) != 1 {
		t.Fatalf("%s has configs %v, %v; want one", cluster, configs, err)
	}
	text, err := os.ReadFile(configs[0])
	if err != nil {
		t.Fatal(err)
	}
	want, err := snapshot.Seal(text, example.Pool)
	if err != nil {
		t.Fatal(err)
	}

	args, err := server.Bootstrap(cluster)
	if err != nil {
		t.Fatal(err)
	}
	s := server.Start(t, args...)
	s.Ready()
	stub, err := s.Stub(t.Context(), example.Pool)
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "root")
	lab.ApplyIgnition(t, stub, root)
	agent := exec.Command(filepath.Join(root, "usr/local/bin/mcsnap-agent"), "firstboot", "--root", root)
	if out, err := agent.CombinedOutput(); err != nil {
		t.Fatalf("mcsnap-agent firstboot: %v\n%s", err, out)
	}

	// The cluster has forgotten the config: the folder that is looked in is empty.
	if err := witness.HandedOver(root, want, witness.Cluster{Folder: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	// What the node has is what the server keeps.
	kept, _, err := s.Get(t.Context(), "/snapshot/"+want.Digest().PathForm())
	if err != nil {
		t.Fatal(err)
	}
	if stored, err := snapshot.Open(kept); err != nil || stored.Digest() != want.Digest() {
		t.Fatalf("the server keeps %v, %v; want %s", stored, err, want.Digest())
	}
	s.Down()
}
