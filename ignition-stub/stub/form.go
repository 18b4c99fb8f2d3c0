// SPDX-License-Identifier: Apache-2.0

package stub

import (
	"encoding/base64"
	"strings"
)

// Form is how a stub is written down.
type Form string

// The forms.
const (
	JSON       Form = "json"        // the config itself
	Base64     Form = "base64"      // what an API takes that wants no raw bytes, such as VMware's guestinfo
	MachineAPI Form = "machine-api" // the Secret that a MachineSet's userDataSecret names
	ClusterAPI Form = "cluster-api" // the Secret that a Machine's bootstrap.dataSecretName names
)

// Forms are all of them.
var Forms = []Form{JSON, Base64, MachineAPI, ClusterAPI}

// Secret says how the Secret of a form is called.
type Secret struct {
	Name      string
	Namespace string // empty means openshift-machine-api for MachineAPI, and none for ClusterAPI
	Cluster   string // ClusterAPI's label cluster.x-k8s.io/cluster-name
}

type object struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metadata          `json:"metadata"`
	Type       string            `json:"type"`
	Data       map[string][]byte `json:"data"`
}

type metadata struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// Write returns the stub in a form, ending in a newline. Warnings are about the Secret. The error is an [InputError].
func (s *Stub) Write(form Form, secret Secret) (text []byte, warnings []string, err error) {
	switch form {
	case JSON:
		return append(append([]byte{}, s.JSON...), '\n'), nil, nil
	case Base64:
		return append(base64.StdEncoding.AppendEncode(nil, s.JSON), '\n'), nil, nil
	case MachineAPI, ClusterAPI:
		if !isName(secret.Name) {
			return nil, nil, wrong("secret name", "%.60q: want lower-case letters, digits, - and .", secret.Name)
		}
	default:
		return nil, nil, wrong("form", "%.20q: want one of json, base64, machine-api, cluster-api", string(form))
	}
	o := object{APIVersion: "v1", Kind: "Secret", Metadata: metadata{Name: secret.Name, Namespace: secret.Namespace}, Type: "Opaque"}
	if form == MachineAPI {
		if o.Metadata.Namespace == "" {
			o.Metadata.Namespace = "openshift-machine-api"
		}
		// Without disableTemplating the Machine API would take {{ }} in the config for its own.
		o.Data = map[string][]byte{"userData": s.JSON, "disableTemplating": []byte("true")}
		if strings.HasSuffix(secret.Name, "-user-data-managed") {
			// Field case 42: two writers of one Secret.
			warnings = append(warnings, "secret "+secret.Name+" belongs to the machine-config operator, which writes its own back; take another name, and name it in the MachineSet's userDataSecret")
		}
		return append(encode(o), '\n'), warnings, nil
	}
	if secret.Cluster == "" {
		return nil, nil, wrong("cluster", "Cluster API finds the Secret by its cluster's name; name the cluster")
	}
	o.Type = "cluster.x-k8s.io/secret"
	o.Metadata.Labels = map[string]string{"cluster.x-k8s.io/cluster-name": secret.Cluster}
	o.Data = map[string][]byte{"value": s.JSON, "format": []byte("ignition")}
	return append(encode(o), '\n'), nil, nil
}

func isName(name string) bool {
	return name != "" && len(name) <= 253 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == "" &&
		strings.Trim(name, "-.") == name
}
