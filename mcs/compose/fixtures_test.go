// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot"
)

// lowest is the oldest version each config in testdata can be written in; the others go down to 2.2.
var lowest = map[string]specver.Version{
	"cex":                specver.V3_5,
	"disks":              specver.V3_0,
	"kargs-remove":       specver.V3_3,
	"luks":               specver.V3_2,
	"luks-discard":       specver.V3_4,
	"mount-options":      specver.V3_1,
	"nodes-without-mode": specver.V3_0,
	"proxy":              specver.V3_1,
	"remote-sha256":      specver.V3_1,
	"special-bits":       specver.V3_6,
	"tang":               specver.V3_4,
	"tang-3.4":           specver.V3_4,
}

type fixture struct {
	name     string
	snapshot *snapshot.Snapshot
	own      specver.Version
	lowest   specver.Version
}

// fixtures are the configs of testdata, the example cluster of this repository, and OpenShift's own rendered config where
// it is at hand.
func fixtures(t testing.TB) []fixture {
	t.Helper()
	var all []fixture
	for _, pattern := range []string{
		"testdata/*.yaml",
		"../../e2e/example/cluster/machine-configs/*.yaml",
		"../../../shared/fixtures/openshift-bootstrap/machine-configs/*.yaml",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			all = append(all, load(t, file))
		}
	}
	if len(all) < 25 {
		t.Fatalf("only %d configs found in testdata", len(all))
	}
	return all
}

func load(t testing.TB, file string) fixture {
	t.Helper()
	rendered, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Seal(rendered, "worker")
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	own, err := compose.Own(s)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	f := fixture{strings.TrimSuffix(filepath.Base(file), ".yaml"), s, own, specver.V2_2}
	if v, ok := lowest[f.name]; ok {
		f.lowest = v
	}
	return f
}

func seal(t testing.TB, config string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Seal([]byte(`{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig",
		"metadata":{"name":"rendered-worker-0123456789abcdef0123456789abcdef"},"spec":{"config":`+config+`}}`), "worker")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// everything is what a cluster's server adds, with one agent.
func everything(s *snapshot.Snapshot) compose.Inputs {
	return compose.Inputs{
		Snapshot:   s,
		Kubeconfig: []byte("apiVersion: v1\nkind: Config\nusers: [{name: kubelet, user: {token: S3CR3T}}]\n"),
		Files: []compose.File{
			{Path: "/etc/kubernetes/kubelet-ca.crt", Contents: []byte("-----BEGIN CERTIFICATE-----\nnew\n"), Mode: 0o644, Reason: "controllerconfig"},
			{Path: "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem", Contents: nil, Reason: "controllerconfig"},
		},
		Agents:            []compose.Agent{{Arch: "amd64", URL: "https://mcs.example:22623/agent/sha512-" + agentSum, SHA512: agentSum}},
		AgentConfig:       []byte("apiVersion: mcsnap/v1\nservers: [https://mcs.example:22623]\n"),
		CompatContentFile: true,
	}
}

var agentSum = strings.Repeat("ab", 64)
