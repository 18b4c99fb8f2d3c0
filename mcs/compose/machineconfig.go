// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mcsnap/mcsnap/mcs/specver"
)

// Keys of the annotations that a new node starts with. All but the last are OpenShift's.
const (
	annotationCurrent      = "machineconfiguration.openshift.io/currentConfig"
	annotationDesired      = "machineconfiguration.openshift.io/desiredConfig"
	annotationFirstPivot   = "machineconfiguration.openshift.io/firstPivotConfig"
	annotationState        = "machineconfiguration.openshift.io/state"
	annotationCurrentImage = "machineconfiguration.openshift.io/currentImage"
	annotationDesiredImage = "machineconfiguration.openshift.io/desiredImage"
	annotationBirth        = "mcsnap/birth-snapshot"

	// annotationPreBuilt stands on a rendered config whose nodes start from an image that was built beforehand.
	annotationPreBuilt = "machineconfiguration.openshift.io/pre-built-image"
)

// annotations is the file that a daemon makes the node's annotations of.
func (r *rendered) annotations() []byte {
	name := r.snapshot.Name()
	a := map[string]string{
		annotationCurrent:    name,
		annotationDesired:    name,
		annotationFirstPivot: name,
		annotationState:      "Done",
		annotationBirth:      string(r.snapshot.Digest()),
	}
	if image := r.preBuiltImage(); image != "" {
		a[annotationCurrentImage], a[annotationDesiredImage] = image, image
	}
	return mustMarshal(a)
}

// preBuiltImage is the image that wins over osImageURL, "" where there is none.
func (r *rendered) preBuiltImage() string {
	var object struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if json.Unmarshal(r.snapshot.MachineConfig(), &object) != nil {
		return "" // annotations that are not strings name no image
	}
	return object.Metadata.Annotations[annotationPreBuilt]
}

// machineConfigs are the MachineConfig as OpenShift's first boot reads it, without its Ignition section, and on request
// the copy that other tools read. Both are made from a copy of the rendered object: kernel arguments that Ignition
// cannot carry below 3.3 stand in its list, and no Ignition section in them is newer than what was asked for.
func (r *rendered) machineConfigs(compat bool) ([]File, error) {
	empty := mustMarshal(map[string]any{"ignition": map[string]string{"version": r.to.String()}})
	encapsulated, err := r.machineConfig(empty, r.preBuiltImage())
	if err != nil {
		return nil, err
	}
	files := []File{{Path: EncapsulatedPath, Contents: encapsulated, Mode: 0o644}}
	if !compat {
		return files, nil
	}
	config := r.snapshot.IgnitionConfig()
	if r.to.Less(r.own) {
		if config, err = specver.Down(r.cfg, r.to); err != nil {
			return nil, err
		}
	}
	content, err := r.machineConfig(config, "")
	if err != nil {
		return nil, err
	}
	return append(files, File{Path: ContentPath, Contents: content, Mode: 0o600}), nil
}

// machineConfig is the rendered object, unknown fields included, with another Ignition section, the moved kernel
// arguments, and another image unless that is "".
func (r *rendered) machineConfig(config []byte, image string) ([]byte, error) {
	exported, err := r.snapshot.Export("")
	if err != nil {
		return nil, err
	}
	var object, spec map[string]json.RawMessage
	if err := json.Unmarshal(exported, &object); err != nil {
		return nil, &InvalidConfigError{Field: "spec", Reason: "the object is not JSON"}
	}
	if err := json.Unmarshal(object["spec"], &spec); err != nil || spec == nil {
		return nil, &InvalidConfigError{Field: "spec", Reason: "it is not an object"}
	}
	spec["config"] = config
	if len(r.kargs) > 0 {
		var own []string
		if raw, ok := spec["kernelArguments"]; ok {
			if err := json.Unmarshal(raw, &own); err != nil {
				return nil, &InvalidConfigError{Field: "spec.kernelArguments", Reason: "it is not a list of strings"}
			}
		}
		spec["kernelArguments"] = mustMarshal(r.kernelArguments(own))
	}
	if image != "" {
		spec["osImageURL"] = mustMarshal(image)
	}
	object["spec"] = mustMarshal(spec)
	return mustMarshal(object), nil
}

// mustMarshal is for values made of strings, maps and JSON that was read before: they always have a JSON form.
func mustMarshal(v any) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("writing JSON of strings and maps: %v", err))
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
