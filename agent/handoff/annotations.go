// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
)

const (
	currentAnnotation = "machineconfiguration.openshift.io/currentConfig"
	birthAnnotation   = "mcsnap/birth-snapshot"
)

// Annotations is what the live annotations file says about the node's birth.
type Annotations struct {
	Config string          `json:"config,omitempty"` // name of the rendered config; "" when the file does not say
	Digest snapshot.Digest `json:"digest,omitempty"` // of the snapshot; "" when the file does not say
}

// readAnnotations returns nil when there is no live annotations file.
func readAnnotations(node *root.Root) (*Annotations, error) {
	text, err := node.ReadFile(AnnotationsPath, maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, machineError(err)
	}
	var values map[string]string
	if err := json.Unmarshal(text, &values); err != nil || values == nil {
		return nil, &InputError{AnnotationsPath, "it is no JSON object of texts, so nothing tells which config this node was born with", "provision the node again"}
	}
	said := &Annotations{Config: values[currentAnnotation]}
	if birth := values[birthAnnotation]; birth != "" {
		if said.Digest, err = snapshot.ParseDigest(birth); err != nil {
			return nil, &InputError{AnnotationsPath, fmt.Sprintf("%s: %v", birthAnnotation, err), "provision the node again"}
		}
	}
	return said, nil
}
