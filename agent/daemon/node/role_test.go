// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/mcsnap/mcsnap/e2e/kube"
)

// allow applies the role that ships.
func allow(t *testing.T, cluster *kube.Cluster) {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/daemon/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range strings.Split(string(text), "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(doc), &object.Object); err != nil {
			t.Fatal(err)
		}
		resource := strings.ToLower(object.GetKind()) + "s"
		cluster.Apply(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}, "", object.Object)
	}
}
