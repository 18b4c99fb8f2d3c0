// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"
)

// toJSON takes a rendered config as JSON or as one YAML document and returns scanned JSON. YAML is read as the
// Kubernetes tools read it (sigs.k8s.io/yaml).
func toJSON(rendered []byte) ([]byte, error) {
	if first := bytes.TrimLeft(rendered, " \t\r\n"); len(first) > 0 && first[0] == '{' {
		return rendered, scan(rendered)
	}
	if err := scanYAML(rendered); err != nil {
		return nil, err
	}
	converted, err := kyaml.YAMLToJSON(rendered)
	if err != nil {
		return nil, &NotJSONError{Cause: errors.New("the YAML has no JSON form")}
	}
	return converted, scan(converted)
}

// scanYAML refuses what the conversion to JSON would change in silence: a second document, duplicate keys, and numbers
// that a float64 cannot hold.
func scanYAML(doc []byte) error {
	dec := yaml.NewDecoder(bytes.NewReader(doc))
	var root, more yaml.Node
	if err := dec.Decode(&root); err != nil {
		if err == io.EOF {
			return &NotJSONError{Cause: errors.New("it is empty")}
		}
		return &NotJSONError{Cause: errors.New("invalid YAML" + lineOf(err))}
	}
	if err := dec.Decode(&more); err != io.EOF {
		return &NotJSONError{Cause: errors.New("more than one YAML document")}
	}
	if len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode {
		return &NotJSONError{Cause: errors.New("the document is not an object")}
	}
	return scanNode(root.Content[0], "")
}

// lineOf keeps the place a YAML parser names and drops its quotations: they may be secrets.
func lineOf(err error) string {
	if _, rest, ok := strings.Cut(err.Error(), "line "); ok {
		digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		return " at line " + digits
	}
	return ""
}

func scanNode(node *yaml.Node, field string) error {
	switch node.Kind {
	case yaml.MappingNode:
		seen := make(map[string]bool, len(node.Content)/2)
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i].Value
			child := field + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
			if seen[key] && node.Content[i].Kind == yaml.ScalarNode {
				return &DuplicateKeyError{Field: child}
			}
			seen[key] = true
			if err := scanNode(node.Content[i+1], child); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			if err := scanNode(item, fmt.Sprintf("%s/%d", field, i)); err != nil {
				return err
			}
		}
	case yaml.ScalarNode:
		if tag := node.ShortTag(); (tag == "!!float" || tag == "!!int") && !exactYAML(node.Value) {
			return &InexactNumberError{Field: field}
		}
	}
	return nil
}

// exactYAML is exact for YAML's spellings of a number: signs, underscores, and other bases.
func exactYAML(literal string) bool {
	plain := strings.TrimPrefix(strings.ReplaceAll(literal, "_", ""), "+")
	if n, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return -maxSafeInteger <= n && n <= maxSafeInteger
	}
	return exact(plain)
}
