// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/kube"
)

// Field case 80, on a real API server and with the shipped roles: a node's address is refused from the moment its Node
// object is there, also by a server that was just started, and may have a config again once the object is deleted.
func TestRefuseJoined(t *testing.T) {
	c := kube.Start(t, kube.Options{})
	for _, namespace := range []string{operator, "mcsnap"} {
		c.Apply(kube.Namespaces, "", kube.Plain("Namespace", namespace, nil))
	}
	for _, part := range []string{"base", "overlays/openshift/server"} {
		c.ApplyFile("../../deploy/" + part + "/rbac.yaml")
	}
	name := "rendered-worker-" + strings.Repeat("a", 32)
	c.Apply(kube.Configs, "", kube.Rendered(name, name+" ", 5_000))
	c.Apply(kube.Pools, "", kube.Pool("worker", name, name, 1))
	s := newServer(t, c, c.Kubeconfig(c.ServiceAccount("mcsnap", "mcs")), "--refuse-joined")
	s.Up()
	s.Ready()

	node := func(name, address string) {
		c.Apply(kube.Nodes, "", kube.Plain("Node", name, map[string]any{"status": map[string]any{"addresses": []any{
			map[string]any{"type": "Hostname", "address": name}, map[string]any{"type": "InternalIP", "address": address},
		}}}))
	}
	answers := func(want int, words string) func() error {
		return func() error {
			if g := fetch(t, s, ""); g.status != want || !strings.Contains(g.text, words) {
				return fmt.Errorf("%d %.200s", g.status, g.text)
			}
			return nil
		}
	}
	node("other", "192.0.2.7")
	s.Eventually("another node's address is no matter", answers(http.StatusOK, ""))
	node("this", "127.0.0.1")
	s.Eventually("the node's address is refused", answers(http.StatusServiceUnavailable, "delete the Node object"))
	s.Kill()
	s.Up()
	s.Eventually("pools are known", func() error { return answers(http.StatusServiceUnavailable, "has joined")() })
	c.Delete(kube.Nodes, "other")
	if err := answers(http.StatusServiceUnavailable, "has joined")(); err != nil {
		t.Errorf("another node was deleted: %v", err)
	}
	c.Delete(kube.Nodes, "this")
	s.Eventually("the machine may be provisioned again", answers(http.StatusOK, ""))
}
