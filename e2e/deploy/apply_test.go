// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/kube"
	"github.com/mcsnap/mcsnap/e2e/lab"
	"github.com/mcsnap/mcsnap/e2e/server"
)

// A real API server takes every object of every overlay, with every field known to it, and the pods that would come of
// them. cert-manager's and OpenShift's kinds have their own definitions; their controllers do not run here.
func TestAPIServerTakesTheOverlays(t *testing.T) {
	c := prerequisites(t, kube.Options{NoCRDs: true})
	for _, name := range Overlays {
		overlay := filepath.Join(folder, "overlays", name)
		objects := rendered(t, name, "")
		out := c.Kubectl(t, "apply", "--validate=strict", "-k", overlay)
		if lines := strings.Count(out, "\n"); lines != len(objects) {
			t.Errorf("%s: %d objects, kubectl says\n%s", name, len(objects), out)
		}
		// Once more, judged and not written: nothing is left to change.
		again := c.Kubectl(t, "apply", "--validate=strict", "--dry-run=server", "-k", overlay)
		if unchanged := strings.Count(again, "unchanged (server dry run)"); unchanged != len(objects) {
			t.Errorf("%s: applied twice it changes\n%s", name, again)
		}
		for _, o := range objects {
			if o["kind"] == "DaemonSet" {
				namespace, _ := at(o, "metadata", "namespace").(string)
				if _, err := pod(t, c, o, namespace, nil); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if _, err := pod(t, c, o, "restricted", nil); err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
					t.Errorf("%s: in a restricted namespace: %v", name, err)
				}
				if _, err := pod(t, c, o, namespace, map[string]any{"hostNetwrok": true}); err == nil || !strings.Contains(err.Error(), "unknown field") {
					t.Errorf("%s: with an unknown field: %v", name, err)
				}
			}
		}
	}
}

// A real API server takes what monitoring adds, by the Prometheus operator's own definitions.
func TestAPIServerTakesMonitoring(t *testing.T) {
	c := prerequisites(t, kube.Options{NoCRDs: true})
	for _, name := range Overlays {
		added := 0
		for _, o := range rendered(t, name, "monitoring") {
			if kind := o["kind"]; kind != "PrometheusRule" && kind != "ServiceMonitor" && kind != "Service" {
				continue
			}
			added++
			namespace, _ := at(o, "metadata", "namespace").(string)
			c.TryKubectlInput(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}", "apply", "-f", "-")
			text, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := c.TryKubectlInput(t, string(text), "apply", "--validate=strict", "-f", "-"); err != nil {
				t.Errorf("%s: %s: %v\n%s", name, o, err, out)
			}
			o["spec"].(map[string]any)["nobodyKnows"] = 1
			if text, err = json.Marshal(o); err != nil {
				t.Fatal(err)
			}
			if _, err := c.TryKubectlInput(t, string(text), "apply", "--validate=strict", "-f", "-"); err == nil {
				t.Errorf("%s: %s is taken with a field that nobody knows", name, o)
			}
		}
		if added != 3 {
			t.Errorf("%s: monitoring adds %d objects; want 3", name, added)
		}
	}
}

// prerequisites is a cluster with what docs/install.md wants to be there before: cert-manager's definitions, and of
// OpenShift the definition of its constraints and the operator's namespace.
func prerequisites(t *testing.T, options kube.Options) *kube.Cluster {
	t.Helper()
	c := kube.Start(t, options)
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		t.Fatalf("find the module github.com/openshift/api: %v; run go mod download", err)
	}
	constraints := filepath.Join(strings.TrimSpace(string(module)), "security/v1/zz_generated.crd-manifests/0000_03_config-operator_01_securitycontextconstraints.crd.yaml")
	c.Kubectl(t, "create", "-f", lab.CRDs(t), "-f", constraints)
	c.Kubectl(t, "wait", "--for=condition=Established", "--all", "crd", "--timeout=60s")
	c.Kubectl(t, "create", "namespace", "openshift-machine-config-operator")
	c.Kubectl(t, "create", "namespace", "restricted")
	c.Kubectl(t, "label", "namespace", "restricted", "pod-security.kubernetes.io/enforce=restricted")
	return c
}

// pod asks the API server whether it would take a pod of the DaemonSet's template in a namespace, with more in its spec.
func pod(t *testing.T, c *kube.Cluster, set Object, namespace string, more map[string]any) (string, error) {
	t.Helper()
	spec := map[string]any{}
	for key, value := range at(set, "spec", "template", "spec").(map[string]any) {
		spec[key] = value
	}
	for key, value := range more {
		spec[key] = value
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "namespace": namespace}, "spec": spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c.TryKubectlInput(t, string(text), "create", "--validate=strict", "--dry-run=server", "-f", "-")
}

// The settings of every overlay are ones that the server takes.
func TestSettingsOfTheOverlays(t *testing.T) {
	for _, name := range Overlays {
		file := filepath.Join(folder, "overlays", name, "config.yaml")
		if stdout, stderr, code := server.Execute(t, "config", "check", "--config", file); code != 0 {
			t.Errorf("%s: exit code %d\n%s%s", file, code, stdout, stderr)
		}
	}
}
