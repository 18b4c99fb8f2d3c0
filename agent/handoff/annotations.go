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

// Birth is the digest of the snapshot that a node was born with, as far as anything but the snapshot says it: the
// annotations file, live or after bootstrap, or the record of the hand-over. fresh is whether bootstrap has not ended.
func Birth(node *root.Root) (digest snapshot.Digest, fresh bool) {
	for _, name := range []string{AnnotationsPath, BootstrappedPath} {
		if said, err := readAnnotationsFrom(node, name); err == nil && said != nil && said.Digest != "" {
			return said.Digest, name == AnnotationsPath
		}
	}
	if record, err := ReadRecord(node); err == nil && record != nil {
		return record.Digest, false
	}
	return "", false
}

// readAnnotations returns nil when there is no live annotations file.
func readAnnotations(node *root.Root) (*Annotations, error) {
	return readAnnotationsFrom(node, AnnotationsPath)
}

func readAnnotationsFrom(node *root.Root, name string) (*Annotations, error) {
	text, err := node.ReadFile(name, maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, machineError(err)
	}
	var values map[string]string
	if err := json.Unmarshal(text, &values); err != nil || values == nil {
		return nil, &InputError{name, "it is no JSON object of texts, so nothing tells which config this node was born with", "provision the node again"}
	}
	said := &Annotations{Config: values[currentAnnotation]}
	if birth := values[birthAnnotation]; birth != "" {
		if said.Digest, err = snapshot.ParseDigest(birth); err != nil {
			return nil, &InputError{name, fmt.Sprintf("%s: %v", birthAnnotation, err), "provision the node again"}
		}
	}
	return said, nil
}
