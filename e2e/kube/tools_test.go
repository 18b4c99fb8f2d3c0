// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/kube"
)

// kubectl talks to the cluster as its administrator, and its complaints are told.
func TestKubectl(t *testing.T) {
	c := kube.Start(t, kube.Options{})
	c.KubectlInput(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":"b"}}`, "create", "-f", "-")
	if got := c.Kubectl(t, "get", "configmap", "m", "-o", "jsonpath={.data.a}"); got != "b" {
		t.Errorf("got %q", got)
	}
	if out, err := c.TryKubectl(t, "get", "machineconfigpool", "nowhere"); err == nil || !strings.Contains(err.Error(), "NotFound") {
		t.Errorf("%q, %v", out, err)
	}
}

// The controller manager runs the controllers that it is asked for, and the collector.
func TestControl(t *testing.T) {
	c := kube.Start(t, kube.Options{})
	c.Control("namespace-controller")
	c.Kubectl(t, "create", "namespace", "doomed")
	c.Kubectl(t, "delete", "namespace", "doomed", "--timeout=60s")
	owner := c.Apply(kube.ConfigMaps, "default", kube.Plain("ConfigMap", "owner", nil))
	owned := kube.Plain("ConfigMap", "owned", nil)
	owned["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": string(owner.GetUID()),
	}}
	c.Apply(kube.ConfigMaps, "default", owned)
	c.Kubectl(t, "delete", "configmap", "owner")
	c.Kubectl(t, "wait", "--for=delete", "configmap/owned", "--timeout=60s")
}
