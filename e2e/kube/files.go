// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// ApplyFile applies every object of a file of manifests, as kubectl apply -f does.
func (c *Cluster) ApplyFile(path string) {
	c.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := map[string]any{}
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			c.t.Fatalf("%s: %v", path, err)
		}
		if len(object) == 0 {
			continue
		}
		group, version, grouped := strings.Cut(object["apiVersion"].(string), "/")
		if !grouped {
			group, version = "", group
		}
		namespace, _ := object["metadata"].(map[string]any)["namespace"].(string)
		resource := strings.ToLower(object["kind"].(string)) + "s"
		c.Apply(schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, namespace, object)
	}
}

// Plain is an object of the core API with nothing but its name and what is given.
func Plain(kind, name string, more map[string]any) map[string]any {
	object := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}
	for key, value := range more {
		object[key] = value
	}
	return object
}
