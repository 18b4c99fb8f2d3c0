// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mcsnap/mcsnap/e2e/kube"
	"github.com/mcsnap/mcsnap/e2e/server"
)

// Field case 104: three servers that know nothing of each other, and one change. Each seals the same digest and composes the
// same bytes from what the cluster has, none of them writes what the others would have to wait for, and what a machine was
// given by one it can fetch again by digest from any.
func TestReplicas(t *testing.T) {
	c := kube.Start(t, kube.Options{})
	replicas := []*server.Test{newServer(t, c, c.Kubeconfig(c.Admin)), newServer(t, c, c.Kubeconfig(c.Admin)), newServer(t, c, c.Kubeconfig(c.Admin))}
	for _, s := range replicas {
		// Without their addresses and CAs, which are all in a body that is one server's own.
		s.Args = without(s.Args, "--external-url", server.URL)
		s.Up()
	}
	for _, digit := range []string{"a", "b"} {
		name := "rendered-worker-" + strings.Repeat(digit, 32)
		made := c.Apply(kube.Configs, "", kube.Rendered(name, name+" ", 20_000))
		c.Apply(kube.Pools, "", kube.Pool("worker", name, name, 1))
		var first *node
		for i, s := range replicas {
			n := &node{client: s.Client(), url: s.URL() + "/config/worker"}
			s.Eventually("the change is served", func() error {
				if err := n.boot(t.Context()); err != nil {
					return err
				}
				if n.rendered != name {
					return fmt.Errorf("%s is", n.rendered)
				}
				return nil
			})
			if first == nil {
				first = n
			}
			if n.digest != first.digest || !bytes.Equal(n.body, first.body) {
				t.Errorf("server %d answers %s, the first %s; the same bytes: %v", i, n.digest, first.digest, bytes.Equal(n.body, first.body))
			}
		}
		var sealed []byte
		for i, s := range replicas {
			again := bySnapshot(t, s, first.digest.PathForm())
			if sealed == nil {
				sealed = again
			}
			if len(again) == 0 || !bytes.Equal(again, sealed) {
				t.Errorf("server %d has other bytes under the digest", i)
			}
		}
		now, err := c.Client.Resource(kube.Configs).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || now.GetResourceVersion() != made.GetResourceVersion() {
			t.Errorf("a server wrote to the config: %s, then %s (%v)", made.GetResourceVersion(), now.GetResourceVersion(), err)
		}
	}
}

func bySnapshot(t *testing.T, s *server.Test, digest string) []byte {
	t.Helper()
	client := s.Client()
	defer client.CloseIdleConnections()
	reply, err := client.Get(s.URL() + "/snapshot/" + digest)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v", digest, reply.StatusCode, err)
	}
	return text
}

// without takes a flag and its value out of a command line.
func without(args []string, flag, value string) (left []string) {
	for i := 0; i < len(args); i++ {
		if args[i] == flag && i+1 < len(args) && args[i+1] == value {
			i++
			continue
		}
		left = append(left, args[i])
	}
	return left
}

// Field case 105: the server holds nothing in the cluster. Its objects stay as others made them, no finalizer, owner or
// managed field of ours on them, and all of them go at once in any order while it runs and serves.
func TestNothingIsHeld(t *testing.T) {
	c := kube.Start(t, kube.Options{})
	s := newServer(t, c, c.Kubeconfig(c.Admin))
	name := func(digit string) string { return "rendered-worker-" + strings.Repeat(digit, 32) }
	for _, digit := range []string{"a", "b", "c"} {
		c.Apply(kube.Configs, "", kube.Rendered(name(digit), name(digit)+" ", 1000))
	}
	c.Apply(kube.Pools, "", kube.Pool("worker", name("c"), name("c"), 1))
	c.Apply(kube.Pools, "", kube.Pool("infra", name("b"), name("b"), 1))
	s.Up()
	s.Ready()
	before := fetch(t, s, "")
	kinds := []struct {
		resource schema.GroupVersionResource
		names    []string
	}{
		{kube.Pools, []string{"worker"}}, {kube.Configs, []string{name("b"), name("a")}}, {kube.Controllers, []string{"machine-config-controller"}},
		{kube.Configs, []string{name("c")}}, {kube.Pools, []string{"infra"}},
	}
	for _, kind := range kinds {
		for _, object := range kind.names {
			found, err := c.Client.Resource(kind.resource).Get(t.Context(), object, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			untouched(t, found)
			c.Delete(kind.resource, object)
			if err := c.Gone(t.Context(), kind.resource, object); err != nil {
				t.Errorf("%s does not go at once: %v", object, err)
			}
		}
	}
	// What was given out can still be fetched again, though nothing of it is left in the cluster.
	if again := bySnapshot(t, s, before.snapshot.Digest().PathForm()); len(again) == 0 {
		t.Error("the snapshot went with its object")
	}
}

func untouched(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if len(object.GetFinalizers())+len(object.GetOwnerReferences()) > 0 {
		t.Errorf("%s has finalizers %v and owners %v", object.GetName(), object.GetFinalizers(), object.GetOwnerReferences())
	}
	for _, manager := range object.GetManagedFields() {
		if strings.HasPrefix(manager.Manager, "mcs") {
			t.Errorf("%s has fields of %s", object.GetName(), manager.Manager)
		}
	}
}
