// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mcsnap/mcsnap/agent/daemon/change"
	"github.com/mcsnap/mcsnap/agent/daemon/node"
	"github.com/mcsnap/mcsnap/agent/daemon/units"
	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/e2e/kube"
	"github.com/mcsnap/mcsnap/snapshot"
)

const tick = 200 * time.Millisecond // of the daemons here

// machine is one node: its object in the cluster, its root, and a daemon that acts as its kubelet.
type machine struct {
	*testing.T
	cluster *kube.Cluster
	name    string
	dir     string
	fetch   func(context.Context, snapshot.Digest) (*snapshot.Snapshot, error)
	reboot  func(context.Context) error
	bootID  string
}

// provision registers a node that was born with a config, and runs the first-boot agent on its root.
func provision(t *testing.T, cluster *kube.Cluster, name string, born map[string]any) *machine {
	t.Helper()
	m := &machine{T: t, cluster: cluster, name: name, dir: t.TempDir()}
	text, err := json.Marshal(born)
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Seal(text, "worker")
	if err != nil {
		t.Fatal(err)
	}
	m.write("etc/passwd", "root:x:0:0:root:/root:/bin/bash\n", 0o644)
	m.write("etc/text", text1(born), 0o644)
	m.write(snapshot.Path, string(s.Bytes()), 0o600)
	m.write(handoff.AnnotationsPath, fmt.Sprintf(`{%q:%q,%q:%q,"mcsnap/birth-snapshot":%q}`, node.CurrentConfig, s.Name(), node.DesiredConfig, s.Name(), s.Digest()), 0o644)
	at := m.open()
	if _, err := handoff.Run(t.Context(), handoff.Options{Node: at}); err != nil {
		t.Fatal(err)
	}
	return m
}

// register is what the kubelet does when it joins.
func (m *machine) register() {
	m.cluster.Apply(kube.Nodes, "", map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": m.name}})
}

func (m *machine) open() *root.Root {
	m.Helper()
	at, err := root.Open(m.dir, nil)
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() { _ = at.Close() })
	return at
}

func (m *machine) write(name, content string, mode os.FileMode) {
	m.Helper()
	path := filepath.Join(m.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), mode)); err != nil {
		m.Fatal(err)
	}
}

// run starts the daemon; it ends with the test, or with stop.
func (m *machine) run() (stop func()) {
	m.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	var log bytes.Buffer
	options := node.Options{
		Cluster: m.cluster.Node(m.name), Name: m.name, Every: tick, Fetch: m.fetch, Reboot: m.reboot, BootID: m.bootID, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Updater: &change.Updater{Node: m.open(), Units: units.Offline{Root: m.dir}},
	}
	go func() { ended <- node.Run(ctx, options) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			m.Errorf("the daemon of %s ended: %v", m.name, err)
		}
		if m.Failed() {
			m.Logf("the daemon of %s:\n%s", m.name, log.String())
		}
	})
	m.Cleanup(stop)
	return stop
}

// desire is what a pool's controller does.
func (m *machine) desire(config string, more ...string) {
	m.Helper()
	annotations := map[string]any{node.DesiredConfig: config}
	for i := 0; i < len(more); i += 2 {
		annotations[more[i]] = more[i+1]
	}
	m.annotate(m.cluster.Client, annotations)
}

func (m *machine) annotate(client dynamic.Interface, annotations map[string]any) {
	m.Helper()
	if err := patch(client, m.name, annotations); err != nil {
		m.Fatal(err)
	}
}

func patch(client dynamic.Interface, name string, annotations map[string]any) error {
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err == nil {
		_, err = client.Resource(kube.Nodes).Patch(context.Background(), name, types.MergePatchType, text, metav1.PatchOptions{})
	}
	return err
}

// becomes waits until the node tells a state and a current config, and says why.
func (m *machine) becomes(state node.State, current, reason string) {
	m.Helper()
	m.cluster.Eventually(fmt.Sprintf("%s becomes %s at %s", m.name, state, current), func() error {
		is, err := m.cluster.Client.Resource(kube.Nodes).Get(context.Background(), m.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		a := is.GetAnnotations()
		if a[node.StateKey] != string(state) || a[node.CurrentConfig] != current || !strings.Contains(a[node.ReasonKey], reason) {
			return fmt.Errorf("it is %s at %s, desires %s: %q", a[node.StateKey], a[node.CurrentConfig], a[node.DesiredConfig], a[node.ReasonKey])
		}
		return nil
	})
}

func (m *machine) has(want string) {
	m.Helper()
	if got, err := os.ReadFile(filepath.Join(m.dir, "etc/text")); err != nil || string(got) != want {
		m.Errorf("/etc/text is %q, %v; want %q", got, err, want)
	}
}

// systemctl works on the unit files of the machine, as somebody at its console does.
func (m *machine) systemctl(args ...string) {
	m.Helper()
	if out, err := exec.Command("systemctl", append([]string{"--root=" + m.dir}, args...)...).CombinedOutput(); err != nil {
		m.Fatalf("systemctl %v: %v\n%s", args, err, out)
	}
}

// withUnit is a config with an enabled unit in it.
func withUnit(config map[string]any, name string) map[string]any {
	text := "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
	_ = unstructured.SetNestedSlice(config, []any{map[string]any{"name": name, "enabled": true, "contents": text}},
		"spec", "config", "systemd", "units") // JSON that was just made
	return config
}

// neverRead fails the test if the node asked the API server for a config, by name or in a list that has others.
func (m *machine) neverRead(config string) {
	m.Helper()
	requests := 0
	for line := range strings.Lines(m.cluster.Audit()) {
		var event struct {
			RequestURI string
			User       struct{ Username string }
			ObjectRef  struct{ Resource, Name string }
		}
		if json.Unmarshal([]byte(line), &event) != nil || event.User.Username != "system:node:"+m.name || event.ObjectRef.Resource != "machineconfigs" {
			continue
		}
		requests++
		_, selected, byName := strings.Cut(event.RequestURI, "fieldSelector=metadata.name%3D")
		selected, _, _ = strings.Cut(selected, "&")
		if event.ObjectRef.Name == config || selected == config || event.ObjectRef.Name == "" && !byName {
			m.Errorf("the node read what it was born with: %s", line)
		}
	}
	m.Logf("bench: audit log: %d requests of %s for MachineConfigs, none for %s", requests, m.name, config)
	if requests == 0 {
		m.Error("the audit log has no request of this node at all")
	}
}

func text1(config map[string]any) string {
	files, _, _ := unstructured.NestedSlice(config, "spec", "config", "storage", "files")
	source, _, _ := unstructured.NestedString(files[0].(map[string]any), "contents", "source")
	return strings.TrimPrefix(source, "data:,")
}

// generation is one of a pool's configs.
func generation(i int) map[string]any {
	return kube.Rendered(fmt.Sprintf("rendered-worker-%d", i), fmt.Sprintf("generation%d", i), 0)
}
