// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"sigs.k8s.io/yaml"

	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/snapshot/wording"
)

const group = "machineconfiguration.openshift.io/"

// head is what is read of any object before anything else.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name            string            `json:"name"`
		Annotations     map[string]string `json:"annotations"`
		OwnerReferences []struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"ownerReferences"`
	} `json:"metadata"`
}

// read unmarshals one object of the wanted kind. Only the fields named in the target are looked at: whatever else a
// newer OpenShift writes cannot make a file unreadable.
func read(data []byte, kind string, into any) error {
	var h head
	if err := yaml.Unmarshal(data, &h); err != nil {
		if _, typed := errors.AsType[*json.UnmarshalTypeError](err); typed {
			return fmt.Errorf("not a valid %s: %s; take an unchanged copy", kind, fault(err))
		}
		return errors.New("not one YAML or JSON object; was it written half? Write a new file and rename it into place")
	}
	if h.Kind != kind || len(h.APIVersion) <= len(group) || h.APIVersion[:len(group)] != group {
		return &foreignError{h.Kind, h.APIVersion, kind}
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		return fmt.Errorf("not a valid %s: %s; take an unchanged copy", kind, fault(err))
	}
	return nil
}

// fault says which field is wrong, and quotes nothing of it: it may be a secret.
func fault(err error) string {
	if _, wrong := errors.AsType[*json.UnmarshalTypeError](err); wrong {
		return wording.Error(err)
	}
	if _, wrong := errors.AsType[base64.CorruptInputError](err); wrong {
		return "a field that is to be base64 is not"
	}
	return "a field has the wrong type"
}

// foreignError says that a file holds an object of another kind: it lies in the wrong folder, and is none of ours.
type foreignError struct{ kind, apiVersion, want string }

func (e *foreignError) Error() string {
	return fmt.Sprintf("holds %.64q of %.64q, want %q of %q; move it out of this folder", e.kind, e.apiVersion, e.want, group+"v1")
}

// dnsSubdomain is how Kubernetes names these objects (RFC 1123).
var dnsSubdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

func readPool(data []byte) (source.Pool, error) {
	type configuration struct {
		Name string `json:"name"`
	}
	var p struct {
		head `json:",inline"`
		Spec struct {
			Configuration configuration `json:"configuration"`
		} `json:"spec"`
		Status struct {
			Configuration configuration `json:"configuration"`
			Updated       int32         `json:"updatedMachineCount"`
		} `json:"status"`
	}
	if err := read(data, "MachineConfigPool", &p); err != nil {
		return source.Pool{}, err
	}
	name := p.Metadata.Name
	if len(name) > 253 || !dnsSubdomain.MatchString(name) {
		return source.Pool{}, errors.New("metadata.name is missing or no Kubernetes name; set it")
	}
	return source.Pool{
		Name: name, Spec: p.Spec.Configuration.Name,
		Status: p.Status.Configuration.Name, Updated: p.Status.Updated,
	}, nil
}

func readController(data []byte) (*source.ControllerConfig, error) {
	var c struct {
		Spec struct {
			KubeletCA []byte `json:"kubeAPIServerServingCAData"`
			CloudCA   []byte `json:"cloudProviderCAData"`
			Infra     struct {
				Status struct {
					InternalAPIServer string `json:"apiServerInternalURI"`
				} `json:"status"`
			} `json:"infra"`
		} `json:"spec"`
	}
	if err := read(data, "ControllerConfig", &c); err != nil {
		return nil, err
	}
	return &source.ControllerConfig{
		KubeletCA: c.Spec.KubeletCA, CloudCA: c.Spec.CloudCA,
		InternalAPIServer: c.Spec.Infra.Status.InternalAPIServer,
	}, nil
}

// rendered is what decides whether a MachineConfig is a rendered one, and whose.
type rendered struct {
	name      string
	owner     string // the pool that owns it, "" when none does
	generated bool   // it says that the controller made it
}

func readRendered(data []byte) (rendered, error) {
	var h head
	if err := read(data, "MachineConfig", &h); err != nil {
		return rendered{}, err
	}
	r := rendered{name: h.Metadata.Name}
	_, r.generated = h.Metadata.Annotations[group+"generated-by-controller-version"]
	for _, owner := range h.Metadata.OwnerReferences {
		if owner.Kind == "MachineConfigPool" {
			r.owner = owner.Name
		}
	}
	return r, nil
}

var renderedName = regexp.MustCompile(`^rendered-(.+)-[0-9a-f]{32}$`)

// pool returns whose config it is: its owner's, else the pool's that names it, else what its own name says.
func (r rendered) pool(namedBy map[string]string) string {
	if r.owner != "" {
		return r.owner
	}
	if pool := namedBy[r.name]; pool != "" {
		return pool
	}
	if m := renderedName.FindStringSubmatch(r.name); m != nil && r.generated {
		return m[1]
	}
	return ""
}
