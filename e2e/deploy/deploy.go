// SPDX-License-Identifier: Apache-2.0

// Package deploy judges what deploy/ holds: the overlays as kustomize renders them, the rules they are held to, and what
// a real API server says of every object. It makes the one file in there that is made, the resource definitions. It runs
// no kubelet: where a pod's container is run, it says how.
package deploy

//go:generate go run ./write ../../deploy/overlays/kubernetes/crds.yaml

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/mcsnap/mcsnap/e2e/lab"
)

// Overlays are the folders that somebody applies, below deploy/overlays.
var Overlays = []string{"kubernetes", "openshift"}

// Object is one object of a rendered overlay.
type Object map[string]any

// String is the object's kind and name.
func (o Object) String() string {
	name, _ := at(o, "metadata", "name").(string)
	return fmt.Sprintf("%v %s", o["kind"], name)
}

// Render is `kubectl kustomize` of a folder: every object of it.
func Render(folder string) ([]Object, error) {
	kubectl, err := lab.Find("kube", "kubectl")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(kubectl, "kustomize", folder)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("kubectl kustomize %s: %w: %s", folder, err, bytes.TrimSpace(said.Bytes()))
	}
	if said.Len() > 0 {
		return nil, fmt.Errorf("kubectl kustomize %s warns: %s", folder, bytes.TrimSpace(said.Bytes()))
	}
	return Read(out)
}

// Read takes a stream of manifests apart.
func Read(text []byte) (objects []Object, err error) {
	for i, document := range bytes.Split(text, []byte("\n---\n")) {
		var o Object
		if err := yaml.Unmarshal(document, &o); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		if len(o) > 0 {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

// definitions are those files of OpenShift's API module that the server needs in a cluster without OpenShift.
var definitions = []string{"machineconfigs", "machineconfigpools-SelfManagedHA", "controllerconfigs-Default"}

const head = `# SPDX-License-Identifier: Apache-2.0
#
# The definitions of %s %s, without their descriptions and OpenShift's own annotations: with
# them kubectl apply could not note what it applied. Made by go generate ./e2e/deploy; DO NOT EDIT.
`

// CRDs makes deploy/overlays/kubernetes/crds.yaml.
func CRDs() ([]byte, error) {
	const module = "github.com/openshift/api"
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", module).Output()
	if err != nil {
		return nil, fmt.Errorf("find the module %s: %w; run go mod download", module, err)
	}
	version, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	var all bytes.Buffer
	fmt.Fprintf(&all, head, module, version)
	for i, name := range definitions {
		text, err := os.ReadFile(filepath.Join(dir, "machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_"+name+".crd.yaml"))
		if err != nil {
			return nil, err
		}
		var crd Object
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		metadata := crd["metadata"].(map[string]any)
		delete(metadata, "annotations")
		delete(metadata, "labels")
		versions := at(crd, "spec", "versions").([]any)
		for _, v := range versions {
			undescribed(at(v, "schema", "openAPIV3Schema"))
		}
		made, err := yaml.Marshal(crd)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if i > 0 {
			all.WriteString("---\n")
		}
		all.Write(made)
	}
	return all.Bytes(), nil
}

// undescribed takes the descriptions out of a schema. A property that is called description stays.
func undescribed(schema any) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	delete(s, "description")
	for key, value := range s {
		switch key {
		case "properties", "patternProperties", "definitions":
			for _, property := range value.(map[string]any) {
				undescribed(property)
			}
		case "items", "not", "additionalProperties":
			undescribed(value)
		case "allOf", "anyOf", "oneOf":
			for _, part := range value.([]any) {
				undescribed(part)
			}
		}
	}
}

// at follows keys into nested maps; nil when one is missing.
func at(value any, keys ...string) any {
	for _, key := range keys {
		switch m := value.(type) {
		case map[string]any:
			value = m[key]
		case Object:
			value = m[key]
		default:
			return nil
		}
	}
	return value
}
