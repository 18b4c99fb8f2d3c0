// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package story

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/mcsnap/mcsnap/e2e/kube"
	"github.com/mcsnap/mcsnap/e2e/lab"
	"github.com/mcsnap/mcsnap/e2e/node"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/systemd"
)

const daemonNode = "d1"

// A machine with a real systemd runs the reference daemon in its sandbox: it reaches systemd over D-Bus, enables a unit,
// writes files with owners, and takes all of it back, while the API server has never had the config it was born with.
func TestDaemonInItsSandbox(t *testing.T) {
	ctx := t.Context()
	cluster := kube.Start(t, kube.Options{Nodes: []string{daemonNode}})
	allowNodes(t, cluster)
	born, next := daemonConfig(1, ""), daemonConfig(2, service("x.service"))
	cluster.Apply(kube.Configs, "", next)
	cluster.Apply(kube.Nodes, "", map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": daemonNode}})

	n, err := lan.New(ctx, daemonNode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			said, err := n.Journal(context.Background(), systemd.DaemonName)
			t.Logf("%s\n%s%v", n.Console(), said, err)
		}
		if err := n.Remove(); err != nil {
			t.Error(err)
		}
	})
	sealed := furnish(t, n, cluster, born)
	if err := n.Start(ctx); err != nil {
		t.Fatal(err)
	}
	says := func(state, current string) {
		t.Helper()
		cluster.Eventually(fmt.Sprintf("%s at %s", state, current), func() error {
			object, err := cluster.Client.Resource(kube.Nodes).Get(ctx, daemonNode, metav1.GetOptions{})
			if err != nil {
				return err
			}
			a := object.GetAnnotations()
			if a[mco+"state"] != state || a[mco+"currentConfig"] != current {
				return fmt.Errorf("it says %v", a)
			}
			return nil
		})
	}
	says("Done", sealed.Name())
	if unit, err := n.Unit(ctx, systemd.DaemonName); err != nil || unit.ActiveState != "active" {
		t.Errorf("%+v, %v; want it active: READY was told", unit, err)
	}

	desire(t, cluster, "rendered-worker-2")
	says("Done", "rendered-worker-2")
	if state, err := n.Run(ctx, "systemctl", "is-enabled", "x.service"); err != nil || strings.TrimSpace(state) != "enabled" {
		t.Errorf("x.service is %q, %v; want it enabled", state, err)
	}
	if what, err := n.Run(ctx, "systemctl", "show", "--property=Description", "x.service"); err != nil || !strings.Contains(what, "x.service of a config") {
		t.Errorf("systemd was not reloaded: %q, %v", what, err)
	}
	if is, err := n.Run(ctx, "stat", "--format=%a %u %g %n", "/etc/text", "/opt/owned"); err != nil || is != "644 0 0 /etc/text\n640 65534 0 /opt/owned\n" {
		t.Errorf("the files: %q, %v", is, err)
	}

	desire(t, cluster, sealed.Name())
	says("Done", sealed.Name())
	if state, _ := n.Run(ctx, "systemctl", "is-enabled", "x.service"); strings.TrimSpace(state) == "enabled" {
		t.Error("x.service is still enabled")
	}
	if left, err := n.Run(ctx, "sh", "-c", "ls /etc/systemd/system/x.service /etc/systemd/system/*/x.service /opt/owned 2>/dev/null; true"); err != nil || left != "" {
		t.Errorf("left: %q, %v", left, err)
	}
	if strings.Contains(cluster.Audit(), `"name":"rendered-worker-1"`) {
		t.Error("somebody read the config that the node was born with")
	}
}

const mco = "machineconfiguration.openshift.io/"

func service(name string) string {
	return "[Unit]\nDescription=" + name + " of a config\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
}

// daemonConfig is a config with a file and, from generation 2 on, a file of an owner and an enabled unit.
func daemonConfig(i int, unit string) map[string]any {
	config := kube.Rendered(fmt.Sprintf("rendered-worker-%d", i), fmt.Sprintf("generation%d", i), 0)
	if unit == "" {
		return config
	}
	files, _, _ := unstructured.NestedSlice(config, "spec", "config", "storage", "files")
	files = append(files, map[string]any{"path": "/opt/owned", "mode": int64(0o640), "overwrite": true,
		"user": map[string]any{"name": "nobody"}, "contents": map[string]any{"source": "data:,x"}})
	_ = unstructured.SetNestedSlice(config, files, "spec", "config", "storage", "files") // JSON that was just made
	_ = unstructured.SetNestedSlice(config, []any{map[string]any{"name": "x.service", "enabled": true, "contents": unit}},
		"spec", "config", "systemd", "units")
	return config
}

// furnish puts on a machine's disk what Ignition and an OS image would have: snapshot, file, daemon, unit, kubeconfig.
func furnish(t *testing.T, n *node.Node, cluster *kube.Cluster, born map[string]any) *snapshot.Snapshot {
	t.Helper()
	text, err := json.Marshal(born)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := snapshot.Seal(text, "worker")
	if err != nil {
		t.Fatal(err)
	}
	top, err := lab.Top()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(filepath.Join(top, "bin", "mcsnap-daemon"))
	if err != nil {
		t.Fatalf("%v; run make build", err)
	}
	address := forward(t, cluster.Admin.Host)
	ca, err := os.ReadFile(cluster.Admin.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := map[string]any{"apiVersion": "v1", "kind": "Config", "current-context": "x",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{
			"server": "https://" + address, "tls-server-name": "kubernetes", "certificate-authority-data": ca}}},
		"users":    []any{map[string]any{"name": "u", "user": map[string]any{"token": cluster.Node(daemonNode).BearerToken}}},
		"contexts": []any{map[string]any{"name": "x", "context": map[string]any{"cluster": "c", "user": "u"}}}}
	config, err := json.Marshal(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	dropin := "[Service]\nExecStart=\nExecStart=" + systemd.DaemonPath + " run --reboot=never --drift-interval=1s --node " + daemonNode + "\n"
	for name, file := range map[string]struct {
		content []byte
		mode    os.FileMode
	}{
		snapshot.Path:      {sealed.Bytes(), 0o600},
		"/etc/text":        {[]byte("generation1"), 0o644},
		systemd.DaemonPath: {program, 0o755},
		"/etc/systemd/system/" + systemd.DaemonName:                  {[]byte(systemd.Daemon()), 0o644},
		"/etc/systemd/system/" + systemd.DaemonName + ".d/test.conf": {[]byte(dropin), 0o644},
		"/etc/systemd/system-preset/10-test.preset":                  {[]byte("enable " + systemd.DaemonName + "\n"), 0o644},
		"/var/lib/kubelet/kubeconfig":                                {config, 0o600},
	} {
		path := n.Path(name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, file.content, file.mode)); err != nil {
			t.Fatal(err)
		}
	}
	return sealed
}

// forward has machines reach a server that listens for this one only.
func forward(t *testing.T, host string) string {
	t.Helper()
	at, err := url.Parse(host)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", node.Gateway+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", at.Host)
			if err != nil {
				_ = from.Close()
				continue
			}
			go pipe(from, to)
			go pipe(to, from)
		}
	}()
	return listener.Addr().String()
}

func pipe(from, to net.Conn) {
	_, _ = io.Copy(to, from) // either end may go at any time
	_ = to.Close()
	_ = from.Close()
}

func desire(t *testing.T, cluster *kube.Cluster, config string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, mco+"desiredConfig", config)
	if _, err := cluster.Client.Resource(kube.Nodes).Patch(t.Context(), daemonNode, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// allowNodes applies the role that ships.
func allowNodes(t *testing.T, cluster *kube.Cluster) {
	t.Helper()
	top, err := lab.Top()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(top, "deploy", "daemon", "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range strings.Split(string(text), "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(doc), &object.Object); err != nil {
			t.Fatal(err)
		}
		resource := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: strings.ToLower(object.GetKind()) + "s"}
		cluster.Apply(resource, "", object.Object)
	}
}
