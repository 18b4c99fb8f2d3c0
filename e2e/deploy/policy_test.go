// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const folder = "../../deploy"

// The overlays keep the rules, with and without what may be added.
func TestOverlaysKeepTheRules(t *testing.T) {
	for _, name := range Overlays {
		for _, component := range []string{"", "token-review", "monitoring"} {
			for _, fault := range Policy(rendered(t, name, component)) {
				t.Errorf("%s: %s", name, fault)
			}
		}
	}
}

// rendered is an overlay, with a component of deploy/components where one is named.
func rendered(t *testing.T, name, component string) []Object {
	t.Helper()
	overlay := filepath.Join(folder, "overlays", name)
	if component != "" {
		dir := t.TempDir()
		copied := filepath.Join(dir, "deploy")
		if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
		overlay = filepath.Join(dir, "deploy", "own")
		text := "resources: [../overlays/" + name + "]\ncomponents: [../components/" + component + "]\n"
		if err := os.Mkdir(overlay, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := Render(overlay)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// Each rule is broken once, in an overlay that keeps all the others.
func TestEachRuleBroken(t *testing.T) {
	const image = "registry.example.com/mcsnap/mcs@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for _, name := range Overlays {
		objects := rendered(t, name, "")
		text, err := json.Marshal(objects)
		if err != nil {
			t.Fatal(err)
		}
		for what, c := range map[string]struct{ old, new, want string }{
			"a tag":                    {image, "registry.example.com/mcsnap/mcs:1.0", "not named by its digest"},
			"the latest":               {image, "registry.example.com/mcsnap/mcs", "not named by its digest"},
			"privileged":               {`"privileged":false`, `"privileged":true`, "is privileged"},
			"escalation":               {`"allowPrivilegeEscalation":false,"cap`, `"allowPrivilegeEscalation":true,"cap`, "allowPrivilegeEscalation"},
			"a capability":             {`"drop":["ALL"]`, `"drop":["ALL"],"add":["NET_BIND_SERVICE"]`, "adds capabilities"},
			"capabilities kept":        {`"drop":["ALL"]`, `"drop":["NET_RAW"]`, "does not drop ALL"},
			"a root it can write":      {`"privileged":false,"readOnlyRootFilesystem":true`, `"privileged":false`, "readOnlyRootFilesystem"},
			"root":                     {`"runAsNonRoot":true`, `"runAsNonRoot":false`, "may run as root"},
			"the user root":            {`"runAsUser":65532`, `"runAsUser":0`, "may run as root"},
			"no seccomp":               {`"type":"RuntimeDefault"`, `"type":"Unconfined"`, "seccompProfile"},
			"the host's processes":     {`"hostNetwork":true`, `"hostNetwork":true,"hostPID":true`, "host's processes"},
			"the pod network":          {`"hostNetwork":true`, `"hostNetwork":false`, "host's network"},
			"another folder":           {`"path":"/var/lib/mcs"`, `"path":"/etc"`, "the host's /etc"},
			"an open secret":           {`"defaultMode":288,"secretName":"node-boot`, `"defaultMode":420,"secretName":"node-boot`, "0440"},
			"no priority":              {`"priorityClassName":"system-cluster-critical"`, `"priorityClassName":""`, "priority class"},
			"a short end":              {`"terminationGracePeriodSeconds":75`, `"terminationGracePeriodSeconds":60`, "cut short"},
			"no memory limit":          {`"limits":{"memory":"512Mi"}`, `"limits":{}`, "limit for memory"},
			"a CPU limit":              {`"limits":{"memory":"512Mi"}`, `"limits":{"memory":"512Mi","cpu":"1"}`, "limit for the CPU"},
			"restarts when not ready":  {`"path":"/healthz"`, `"path":"/readyz"`, "probe does not ask"},
			"ready when alive":         {`"path":"/readyz"`, `"path":"/healthz"`, "readiness probe does not ask"},
			"another port of the host": {`"hostPort":`, `"hostPort":1`, "same port"},
			"a field nobody knows":     {`"hostNetwork":true`, `"hostNetwrok":true`, "unknown field"},
			"a verb more":              {`"resources":["nodes"],"verbs":[`, `"resources":["nodes"],"verbs":["delete",`, "gives"},
			"a resource more":          {`"resources":["nodes"`, `"resources":["nodes","secrets"`, "gives"},
			"everybody":                {`"subjects":[{"kind":"ServiceAccount"`, `"subjects":[{"kind":"Group"`, "no service account"},
			"another role":             {`"kind":"ClusterRole","name":"mcs"`, `"kind":"ClusterRole","name":"cluster-admin"`, "binds ClusterRole cluster-admin"},
			"an account more":          {`"subjects":[`, `"subjects":[{"kind":"ServiceAccount","name":"default"},`, "binds "},
			"no allow-cidr":            {"allow-cidr: [10.0.0.0/16]", "access-log: true", "allow-cidr is empty"},
			"all addresses":            {"allow-cidr: [10.0.0.0/16]", "allow-cidr: [0.0.0.0/0]", "or everybody"},
			"no TLS":                   {"tls-cert: /etc/mcs/tls/tls.crt", "listen-plain: [a]", "is for trying things"},
			"another port":             {`"hostPort":226`, `"hostPort":236`, "serve.listen is"},
			"another ConfigMap":        {`"configMap":{"name":"mcs-config-`, `"configMap":{"name":"x-`, "no config.yaml"},
			"no server":                {`"kind":"DaemonSet"`, `"kind":"Pod"`, "no rule here judges"},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				broken := strings.ReplaceAll(string(text), c.old, c.new)
				if broken == string(text) {
					t.Fatalf("%q is not in it, so nothing was broken", c.old)
				}
				var objects []Object
				if err := yaml.Unmarshal([]byte(broken), &objects); err != nil {
					t.Fatal(err)
				}
				if faults := Policy(objects); !strings.Contains(strings.Join(faults, "\n"), c.want) {
					t.Errorf("found %q; want one that says %q", faults, c.want)
				}
			})
		}
	}
	for what, c := range map[string]struct{ manifest, want string }{
		"a secret":          {"kind: Secret\nmetadata: {name: s}\nstringData: {token: abc}", "holds a secret"},
		"a role more":       {"kind: ClusterRole\nmetadata: {name: x}", "no such role"},
		"a wide constraint": {"kind: SecurityContextConstraints\nmetadata: {name: mcs}\nallowPrivilegedContainer: true", "allowPrivilegedContainer is true"},
		"another pod":       {"kind: Deployment\nmetadata: {name: x}", "no rule here"},
	} {
		objects, err := Read([]byte(c.manifest))
		if err != nil {
			t.Fatal(err)
		}
		if faults := Policy(objects); !strings.Contains(strings.Join(faults, "\n"), c.want) {
			t.Errorf("%s: found %q; want one that says %q", what, faults, c.want)
		}
	}
}
