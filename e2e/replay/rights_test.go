// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mcsnap/mcsnap/e2e/kube"
	"github.com/mcsnap/mcsnap/e2e/server"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

const operator = "openshift-machine-config-operator"

// A server under exactly the shipped roles does all its work, and what it gives to nodes follows what changes.
func TestUnderTheShippedRoles(t *testing.T) {
	c := kube.Start(t, kube.Options{Users: []string{"machine"}})
	for _, namespace := range []string{operator, "mcsnap"} {
		c.Apply(kube.Namespaces, "", kube.Plain("Namespace", namespace, nil))
	}
	for _, file := range []string{"base", "components/token-review", "overlays/openshift/server"} {
		c.ApplyFile("../../deploy/" + file + "/rbac.yaml")
	}
	bundle := func(ca string) {
		c.Apply(kube.ConfigMaps, operator, kube.Plain("ConfigMap", "kubeconfig-data", map[string]any{"data": map[string]any{"ca-bundle.crt": ca}}))
	}
	name := "rendered-worker-" + strings.Repeat("a", 32)
	c.Apply(kube.Configs, "", kube.Rendered(name, name+" ", 5_000))
	c.Apply(kube.Pools, "", kube.Pool("worker", name, name, 1))
	s := newServer(t, c, c.Kubeconfig(c.ServiceAccount("mcsnap", "mcs")), "--token-review", "--token-audience", "https://kubernetes.default.svc")
	s.Up()
	s.Ready()

	get := func() *got { return fetch(t, s, "machine-token") }
	if g := fetch(t, s, ""); g.status != http.StatusServiceUnavailable {
		t.Errorf("without a token: %d", g.status)
	}
	before := get()
	// Field case 41: only the folder's CA is there. Field case 48: the user is the bootstrapper's token.
	before.joins(t, "BEGIN CERTIFICATE", "bootstrapper-token")
	bundle("NEW CA 1\n")
	s.Eventually("the ConfigMap's bundle wins", func() error { return get().serves("NEW CA 1") })
	get().joins(t, "NEW CA 1", "bootstrapper-token")

	// Field case 24: CAs rotate under a config that stays the same.
	c.Apply(kube.Controllers, "", kube.Controller("https://api-int.example.com:6443", []byte("KUBELET CA 2\n"), []byte("CLOUD CA\n")))
	s.Eventually("new CAs", func() error { return get().has("/etc/kubernetes/kubelet-ca.crt", "KUBELET CA 2\n") })
	rotated := get()
	if rotated.snapshot.Digest() != before.snapshot.Digest() {
		t.Errorf("a rotated CA changed the digest from %s to %s", before.snapshot.Digest(), rotated.snapshot.Digest())
	}
	if len(rotated.snapshot.Overlays()) <= len(before.snapshot.Overlays()) {
		t.Errorf("overlays %v, then %v", before.snapshot.Overlays(), rotated.snapshot.Overlays())
	}
	// A CA that became empty is removed.
	c.Apply(kube.Controllers, "", kube.Controller("https://api-int.example.com:6443", []byte("KUBELET CA 2\n"), nil))
	s.Eventually("the cloud CA is gone", func() error {
		if text, there := get().files["/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem"]; there {
			return fmt.Errorf("still %q", text)
		}
		return nil
	})

	// No token: not now, with the reason, and never a config without credentials.
	token := filepath.Join(tokensOf(s), "token")
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	s.Eventually("no token", func() error {
		if g := get(); g.status != http.StatusServiceUnavailable || !strings.Contains(g.text, "token is missing") {
			return fmt.Errorf("%d %s", g.status, g.text)
		}
		return nil
	})
	if err := os.WriteFile(token, []byte("second-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the new token", func() error { return get().serves("second-token") })

	// A config that is named and was never captured: the last one is served, and an Event says so.
	c.Apply(kube.Pools, "", kube.Pool("worker", "rendered-worker-never", "rendered-worker-never", 1))
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	s.Eventually("an event", func() error {
		list, err := c.Client.Resource(events).Namespace("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range list.Items {
			if event.Object["reason"] == "ServedLastSelected" {
				return nil
			}
		}
		return fmt.Errorf("%d events, none of them ours", len(list.Items))
	})
	forbidden(t, c)
}

// forbidden sees to it that the roles give nothing else.
func forbidden(t *testing.T, c *kube.Cluster) {
	mcs, err := dynamic.NewForConfig(c.ServiceAccount("mcsnap", "mcs"))
	if err != nil {
		t.Fatal(err)
	}
	core := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	list := func(resource schema.GroupVersionResource, namespace string) error {
		_, err := mcs.Resource(resource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		return err
	}
	for what, err := range map[string]error{
		"secrets":          list(core("secrets"), operator),
		"all configmaps":   list(core("configmaps"), operator),
		"other configmaps": list(core("configmaps"), "default"),
		"reading events":   list(core("events"), "default"),
		"deleting configs": mcs.Resource(kube.Configs).Delete(t.Context(), "x", metav1.DeleteOptions{}),
		"deleting pools":   mcs.Resource(kube.Pools).Delete(t.Context(), "x", metav1.DeleteOptions{}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want it forbidden", what, err)
		}
	}
}

// got is an answer taken apart.
type got struct {
	status   int
	text     string
	snapshot *snapshot.Snapshot
	files    map[string]string
}

func fetch(t *testing.T, s *server.Test, token string) *got {
	t.Helper()
	client := s.Client()
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/config/worker", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	g := &got{status: response.StatusCode, text: string(body), files: map[string]string{}}
	if g.status != http.StatusOK {
		return g
	}
	if g.snapshot, err = snapshot.Extract(body); err != nil {
		t.Fatal(err)
	}
	var config struct {
		Storage struct {
			Files []struct {
				Path     string
				Contents struct{ Source, Compression string }
			}
		}
	}
	if err := json.Unmarshal(body, &config); err != nil {
		t.Fatal(err)
	}
	for _, file := range config.Storage.Files {
		text, err := contents.Decode(file.Contents.Source, file.Contents.Compression, contents.MaxInflated)
		if err != nil {
			t.Fatal(err)
		}
		g.files[file.Path] = string(text)
	}
	return g
}

func (g *got) has(path, want string) error {
	if g.files[path] != want {
		return fmt.Errorf("%d, %s is %q", g.status, path, g.files[path])
	}
	return nil
}

const kubeconfigPath = "/etc/kubernetes/kubeconfig"

// serves fails until the kubeconfig's CA or token has a text.
func (g *got) serves(want string) error {
	config, err := clientcmd.Load([]byte(g.files[kubeconfigPath]))
	if err != nil || config.Clusters["local"] == nil {
		return fmt.Errorf("%d %s: no kubeconfig: %v", g.status, g.text[:min(200, len(g.text))], err)
	}
	if all := string(config.Clusters["local"].CertificateAuthorityData) + config.AuthInfos["kubelet"].Token; !strings.Contains(all, want) {
		return fmt.Errorf("the kubeconfig has %q", all)
	}
	return nil
}

// joins checks both, and where the API server is.
func (g *got) joins(t *testing.T, ca, token string) {
	t.Helper()
	for _, want := range []string{ca, token} {
		if err := g.serves(want); err != nil {
			t.Error(err)
		}
	}
	if config, err := clientcmd.Load([]byte(g.files[kubeconfigPath])); err != nil || config.Clusters["local"].Server != "https://api-int.example.com:6443" {
		t.Errorf("another API server: %v", err)
	}
}
