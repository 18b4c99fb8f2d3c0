// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/mcsnap/mcsnap/e2e/example"
	"github.com/mcsnap/mcsnap/e2e/kube"
	"github.com/mcsnap/mcsnap/e2e/lab"
	"github.com/mcsnap/mcsnap/e2e/server"
	"github.com/mcsnap/mcsnap/e2e/witness"
	"github.com/mcsnap/mcsnap/mcs/devtls"
	"github.com/mcsnap/mcsnap/snapshot"
)

// What `kubectl apply -k deploy/overlays/kubernetes` gives is a server that a node boots from. There is no kubelet here:
// the pod's two containers are run as the API server has them, from the image that `make image` makes, as their users,
// without any capability, on a root that is read-only, with the volumes' real contents at their places and the service
// account's own token. cert-manager does not run either: its secret is written by hand.
func TestNodeBootsFromTheOverlay(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("run this as root: it gives a container its root and its users, as a kubelet does")
	}
	c := prerequisites(t, kube.Options{NoCRDs: true})
	c.Control("serviceaccount-token-controller")
	image := buildImage(t, "../..")
	port := freePort(t)
	overlay := set(t, "kubernetes", map[string]string{
		`https://mcs.example.com:22623"]`:   "https://localhost:" + port + `"]` + "\n  listen: [127.0.0.1:" + port + `]`,
		"[10.0.0.0/16]":                     "[127.0.0.0/8]",
		"[mcs.example.com]":                 "[localhost]",
		"sha256:" + strings.Repeat("0", 64): image.Digest,
	})
	c.Kubectl(t, "apply", "--validate=strict", "-k", overlay)
	c.Kubectl(t, "wait", "--for=condition=Established", "--all", "crd", "--timeout=60s")
	certificate, err := devtls.Ensure(t.TempDir(), []string{"localhost"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c.Kubectl(t, "-n", "mcsnap", "create", "secret", "generic", "mcs-tls",
		"--from-file=tls.crt="+certificate.Cert, "--from-file=tls.key="+certificate.Key, "--from-file=ca.crt="+certificate.CA)
	want := rollOut(t, c)

	p := run(t, c, image)
	s := &server.Test{Server: &server.Server{Host: "localhost", CA: certificate.CA}}
	if _, err := fmt.Sscan(port, &s.Port); err != nil {
		t.Fatal(err)
	}
	until(t, p, "it is ready", func() error { return s.Server.Ready(t.Context()) })
	stub, err := s.Stub(t.Context(), example.Pool)
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "node")
	lab.ApplyIgnition(t, stub, root)
	if out, err := exec.Command(filepath.Join(root, "usr/local/bin/mcsnap-agent-"+runtime.GOARCH), "firstboot", "--root", root).CombinedOutput(); err != nil {
		t.Fatalf("mcsnap-agent firstboot: %v\n%s", err, out)
	}
	if err := witness.HandedOver(root, want, witness.Cluster{Folder: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	// What the node joins with is the token that the overlay's secret has.
	token := c.Kubectl(t, "-n", "mcsnap", "get", "secret", "node-bootstrapper-token", "-o", "go-template={{.data.token | base64decode}}")
	joins, err := os.ReadFile(filepath.Join(root, "etc/kubernetes/kubeconfig"))
	if err != nil || token == "" || !strings.Contains(string(joins), token) {
		t.Errorf("the node's kubeconfig is not of the secret's token: %v", err)
	}
}

// set is a copy of deploy/, with what somebody sets in an overlay before it is applied.
func set(t *testing.T, name string, values map[string]string) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "deploy")
	if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(copied, "overlays", name)
	done := map[string]bool{}
	for _, file := range []string{"config.yaml", "certificate.yaml", "kustomization.yaml"} {
		text, err := os.ReadFile(filepath.Join(overlay, file))
		if err != nil {
			t.Fatal(err)
		}
		for old, value := range values {
			if strings.Contains(string(text), old) {
				text, done[old] = []byte(strings.Replace(string(text), old, value, 1)), true
			}
		}
		if err := os.WriteFile(filepath.Join(overlay, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if len(done) != len(values) {
		t.Fatalf("of %v only %v are in the overlay", values, done)
	}
	return overlay
}

// rollOut writes the example's pool and config to the cluster, and returns what a node is to get.
func rollOut(t *testing.T, c *kube.Cluster) *snapshot.Snapshot {
	t.Helper()
	g, err := example.Render(1)
	if err != nil {
		t.Fatal(err)
	}
	c.KubectlInput(t, string(g.PoolObject), "create", "-f", "-")
	var config map[string]any
	if err := yaml.Unmarshal(g.MachineConfig, &config); err != nil {
		t.Fatal(err)
	}
	owner := at(config, "metadata", "ownerReferences").([]any)[0].(map[string]any)
	owner["uid"] = c.Kubectl(t, "get", "machineconfigpool", example.Pool, "-o", "jsonpath={.metadata.uid}")
	object, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	c.KubectlInput(t, string(object), "create", "-f", "-")
	var pool map[string]any
	if err := yaml.Unmarshal(g.PoolObject, &pool); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"status": pool["status"]})
	if err != nil {
		t.Fatal(err)
	}
	c.Kubectl(t, "patch", "machineconfigpool", example.Pool, "--subresource=status", "--type=merge", "-p", string(text))
	c.Apply(kube.Controllers, "", kube.Controller("https://api-int.example.com:6443", []byte("KUBELET CA\n"), nil))
	s, err := snapshot.Seal([]byte(c.Kubectl(t, "get", "machineconfig", g.Name, "-o", "json")), example.Pool)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs the DaemonSet's pod as this machine's kubelet would, and returns what it says.
func run(t *testing.T, c *kube.Cluster, image *Layout) *container {
	t.Helper()
	var daemons corev1.PodTemplateSpec
	text := c.Kubectl(t, "-n", "mcsnap", "get", "daemonset", "mcs", "-o", "json")
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	template, err := json.Marshal(at(object, "spec", "template"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(template, &daemons); err != nil {
		t.Fatal(err)
	}
	pod := daemons.Spec
	root := filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := image.Images[runtime.GOARCH].Unpack(root); err != nil {
		t.Fatal(err)
	}
	m := machine{c: c, t: t, pod: pod, volumes: t.TempDir()}
	if err := os.Chmod(m.volumes, 0o755); err != nil {
		t.Fatal(err)
	}
	m.write()
	for _, init := range pod.InitContainers {
		first := m.start(init, root)
		if err := first.cmd.Wait(); err != nil {
			t.Fatalf("container %s: %v\n%s", init.Name, err, first.said())
		}
	}
	server := m.start(pod.Containers[0], root)
	t.Cleanup(func() {
		_ = server.cmd.Process.Signal(syscall.SIGTERM)
		if err := server.cmd.Wait(); err != nil {
			t.Errorf("told to end: %v\n%s", err, server.said())
		}
	})
	return server
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // only its number is wanted
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// until asks again until there is no error, for as long as a busy machine may take.
func until(t *testing.T, p *container, what string, ask func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(server.Patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err = ask(); err == nil {
			return
		}
	}
	t.Fatalf("waited until %s: %v\n%s", what, err, p.said())
}
