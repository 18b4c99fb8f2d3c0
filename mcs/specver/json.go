// SPDX-License-Identifier: Apache-2.0

package specver

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Marshal writes a config of any spec version's types compactly and in one fixed order: without null, without the empty
// objects that Go writes for structs nothing is set in, and without escapes for HTML. An element of a list stays, even
// when it is empty.
func Marshal(config any) ([]byte, error) {
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(config); err != nil {
		return nil, fmt.Errorf("writing an Ignition config as JSON: %w", err)
	}
	dec := json.NewDecoder(&plain)
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, fmt.Errorf("writing an Ignition config as JSON: %w", err)
	}
	var out bytes.Buffer
	enc = json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(prune(tree)); err != nil {
		return nil, fmt.Errorf("writing an Ignition config as JSON: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// prune drops members that say nothing: null and objects that are empty once theirs are dropped.
func prune(node any) any {
	switch n := node.(type) {
	case map[string]any:
		for key, member := range n {
			member = prune(member)
			if object, ok := member.(map[string]any); member == nil || ok && len(object) == 0 {
				delete(n, key)
				continue
			}
			n[key] = member
		}
	case []any:
		for i := range n {
			n[i] = prune(n[i])
		}
	}
	return node
}

// convert carries a config from one version's types into another's by way of its JSON, refusing a member that the other
// does not know, and sets the version. Steps that only drop features need nothing more once those are refused.
func convert(from, to any) error {
	raw, err := Marshal(from)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(to); err != nil {
		return fmt.Errorf("converting to a lower Ignition spec: %w", err)
	}
	return nil
}
