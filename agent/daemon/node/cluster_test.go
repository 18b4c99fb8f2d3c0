// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/mcsnap/mcsnap/agent/daemon/node"
	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/e2e/kube"
	"github.com/mcsnap/mcsnap/snapshot"
)

func TestOnARealCluster(t *testing.T) {
	cluster := kube.Start(t, kube.Options{Nodes: []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11", "n12"}})
	allow(t, cluster)
	cluster.Collect()

	// Generation 1 belongs to a pool that goes away, and the real collector takes it.
	old := cluster.Apply(kube.Pools, "", kube.Pool("old", "", "", 0))
	first := generation(1)
	unstructured.SetNestedSlice(first, []any{map[string]any{ //nolint:errcheck // a map that was just made
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "name": "old", "uid": string(old.GetUID()),
	}}, "metadata", "ownerReferences")
	cluster.Apply(kube.Configs, "", first)
	for i := 2; i <= 4; i++ {
		cluster.Apply(kube.Configs, "", generation(i))
	}
	cluster.Delete(kube.Pools, "old")
	cluster.Eventually("the collector takes generation 1", func() error {
		_, err := cluster.Client.Resource(kube.Configs).Get(context.Background(), "rendered-worker-1", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %v", err)
		}
		return nil
	})

	t.Run("born from a config that is gone", func(t *testing.T) {
		m := provision(t, cluster, "n1", generation(1))
		m.register()
		m.run()
		m.becomes(node.Done, "rendered-worker-1", "")
		cluster.Eventually("bootstrap is ended", func() error {
			_, err := os.Stat(filepath.Join(m.dir, handoff.BootstrappedPath))
			return err
		})
		m.desire("rendered-worker-4")
		m.becomes(node.Done, "rendered-worker-4", "")
		m.has("generation4")
		m.neverRead("rendered-worker-1")
		// And home again: what it was born with is on its disk.
		m.desire("rendered-worker-1")
		m.becomes(node.Done, "rendered-worker-1", "")
		m.has("generation1")
		m.neverRead("rendered-worker-1")
	})

	t.Run("the API server is away during the hand-over", func(t *testing.T) {
		cluster.StopAPI()
		m := provision(t, cluster, "n2", generation(1))
		m.run()
		time.Sleep(5 * tick)
		cluster.StartAPI()
		m.register()
		m.becomes(node.Done, "rendered-worker-1", "")
		m.desire("rendered-worker-2")
		m.becomes(node.Done, "rendered-worker-2", "")
		m.has("generation2")
	})

	t.Run("the desired config is collected before it is read", func(t *testing.T) {
		m := provision(t, cluster, "n3", generation(1))
		m.register()
		m.run()
		m.desire("rendered-worker-9")
		m.becomes(node.Degraded, "rendered-worker-1", "MachineConfig rendered-worker-9 is not in the cluster, and no annotation mcsnap/desired-snapshot names its digest")
		cluster.Apply(kube.Configs, "", generation(9)) // it recovers by itself
		m.becomes(node.Done, "rendered-worker-9", "")
		m.has("generation9")
		m.neverRead("rendered-worker-1")
	})

	t.Run("the desired config is collected, and the server has it", func(t *testing.T) {
		m := provision(t, cluster, "n4", generation(1))
		text, err := json.Marshal(generation(8))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := snapshot.Seal(text, "worker")
		if err != nil {
			t.Fatal(err)
		}
		m.fetch = func(_ context.Context, digest snapshot.Digest) (*snapshot.Snapshot, error) {
			if digest != kept.Digest() {
				return nil, errors.New("503 Service Unavailable")
			}
			return kept, nil
		}
		m.register()
		m.run()
		m.desire("rendered-worker-8", node.DesiredSnapshot, "sha256:"+strings.Repeat("0", 64))
		m.becomes(node.Degraded, "rendered-worker-1", "could not be fetched by digest either: 503")
		m.desire("rendered-worker-8", node.DesiredSnapshot, string(kept.Digest()))
		m.becomes(node.Done, "rendered-worker-8", "")
		m.has("generation8")
	})

	t.Run("a file drifts", func(t *testing.T) {
		m := provision(t, cluster, "n5", generation(2))
		m.register()
		m.run()
		m.becomes(node.Done, "rendered-worker-2", "")
		m.write("etc/text", "by hand", 0o644)
		m.becomes(node.Degraded, "rendered-worker-2", "/etc/text has other content")
		m.write("etc/text", "generation2", 0o644)
		m.becomes(node.Done, "rendered-worker-2", "")
	})

	t.Run("a unit is disabled by hand", func(t *testing.T) {
		m := provision(t, cluster, "n10", generation(2))
		m.register()
		m.run()
		cluster.Apply(kube.Configs, "", withUnit(generation(16), "a.service"))
		m.desire("rendered-worker-16")
		m.becomes(node.Done, "rendered-worker-16", "")
		m.systemctl("disable", "a.service")
		m.becomes(node.Degraded, "rendered-worker-16", "a.service is disabled, want it enabled")
		m.systemctl("enable", "a.service")
		m.becomes(node.Done, "rendered-worker-16", "")
	})

	t.Run("every copy of what it was born with is lost", func(t *testing.T) {
		m := provision(t, cluster, "n11", generation(1))
		kept, err := snapshot.LoadFile(filepath.Join(m.dir, snapshot.Path))
		if err != nil {
			t.Fatal(err)
		}
		lose := func(names ...string) {
			for _, name := range names {
				if err := os.Remove(filepath.Join(m.dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		lose(snapshot.Path, handoff.CurrentPath)
		m.register()
		stop := m.run()
		m.becomes(node.Degraded, "", snapshot.Path+": missing, and with it what this node was born with (digest wanted: "+string(kept.Digest())+"); put that file back")
		m.write(snapshot.Path, string(kept.Bytes()), 0o600) // it recovers by itself
		m.becomes(node.Done, "rendered-worker-1", "")
		stop()
		lose(snapshot.Path, "var/lib/mcsnap/current.json")
		stop = m.run()
		m.becomes(node.Degraded, "rendered-worker-1", "digest wanted: "+string(kept.Digest()))
		stop()
		m.fetch = func(context.Context, snapshot.Digest) (*snapshot.Snapshot, error) { return kept, nil }
		m.run()
		m.becomes(node.Done, "rendered-worker-1", "")
		if back, err := snapshot.LoadFile(filepath.Join(m.dir, snapshot.Path)); err != nil || back.Digest() != kept.Digest() {
			t.Errorf("the snapshot is not back: %v", err)
		}
	})

	t.Run("what a running node cannot be brought to", func(t *testing.T) {
		m := provision(t, cluster, "n6", generation(2))
		m.register()
		m.run()
		impossible := generation(7)
		if err := unstructured.SetNestedStringSlice(impossible, []string{"quiet"}, "spec", "kernelArguments"); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(impossible, "example.com/other", "spec", "osImageURL"); err != nil {
			t.Fatal(err)
		}
		cluster.Apply(kube.Configs, "", impossible)
		m.desire("rendered-worker-7")
		m.becomes(node.Unreconcilable, "rendered-worker-2", "spec.kernelArguments changed; spec.osImageURL changed")
		m.has("generation2")
		m.desire("rendered-worker-3")
		m.becomes(node.Done, "rendered-worker-3", "")
	})

	// Field case 98: applied is not done. The node is Done in the boot after the one in which it was updated.
	t.Run("a reboot comes first", func(t *testing.T) {
		m := provision(t, cluster, "n9", generation(2))
		m.register()
		asked := make(chan struct{}, 100)
		m.bootID, m.reboot = "one", func(context.Context) error { asked <- struct{}{}; return nil }
		stop := m.run()
		m.desire("rendered-worker-4")
		m.becomes(node.Working, "rendered-worker-2", "rebooting into rendered-worker-4")
		<-asked
		stop()
		m.bootID = "two"
		m.run()
		m.becomes(node.Done, "rendered-worker-4", "")
		m.has("generation4")
	})

	t.Run("killed a hundred times on the way", func(t *testing.T) { killed(t, cluster, "n8") })

	t.Run("no node has a hand in another", func(t *testing.T) {
		m := provision(t, cluster, "n7", generation(2))
		m.register()
		as, err := dynamic.NewForConfig(cluster.Node("n7"))
		if err != nil {
			t.Fatal(err)
		}
		if err := patch(as, "n7", map[string]any{"mcsnap/test": "own"}); err != nil {
			t.Errorf("its own node: %v", err)
		}
		if err := patch(as, "n1", map[string]any{node.DesiredConfig: "rendered-worker-2"}); !apierrors.IsForbidden(err) {
			t.Errorf("another node: got %v, want it forbidden", err)
		}
		for resource, name := range map[schema.GroupVersionResource]string{kube.Nodes: "n1", kube.Pools: "worker"} {
			if _, err := as.Resource(resource).Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("%s %s: got %v, want it forbidden", resource.Resource, name, err)
			}
		}
	})
}
