// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"encoding/json"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"
)

const machineConfigAPI = "machineconfiguration.openshift.io/v1"

// notContent are the members of metadata that belong to an object's life in one cluster and not to what a node is to
// be. The pool restores ownerReferences (see Export).
var notContent = []string{
	"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp",
	"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "ownerReferences", "finalizers",
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Seal takes a rendered MachineConfig, as JSON or YAML, and the pool it was rendered for, and returns its snapshot.
// Unknown fields are kept. The same object gives the same snapshot, however it was formatted and whichever cluster's
// bookkeeping it carried.
func Seal(rendered []byte, pool string) (*Snapshot, error) {
	if len(rendered) > MaxSealed {
		return nil, &TooLargeError{What: "the rendered config", Size: int64(len(rendered)), Limit: MaxSealed}
	}
	if err := checkPool(pool); err != nil {
		return nil, err
	}
	doc, err := toJSON(rendered)
	if err != nil {
		return nil, err
	}
	object, metadata, err := openObject(doc)
	if err != nil {
		return nil, err
	}
	if err := strip(object, metadata); err != nil {
		return nil, err
	}
	canonical, err := jcs.Transform(mustMarshal(object))
	if err != nil {
		return nil, &NotJSONError{Cause: err}
	}
	s, err := fromCanonical(canonical, pool)
	if err != nil {
		return nil, err
	}
	if size := len(s.Bytes()); size > MaxSealed {
		return nil, &TooLargeError{What: "the sealed snapshot", Size: int64(size), Limit: MaxSealed}
	}
	return s, nil
}

// strip removes what is not content from object, whose metadata is given taken apart.
func strip(object, metadata map[string]json.RawMessage) error {
	for _, field := range notContent {
		delete(metadata, field)
	}
	if annotations, ok := metadata["annotations"]; ok {
		kept, err := members(annotations, "/metadata/annotations")
		if err != nil {
			return err
		}
		if _, applied := kept[lastApplied]; applied {
			delete(kept, lastApplied)
			metadata["annotations"] = mustMarshal(kept)
			if len(kept) == 0 {
				delete(metadata, "annotations")
			}
		}
	}
	object["metadata"] = mustMarshal(metadata)

	spec, err := members(object["spec"], "/spec")
	if err != nil {
		return err
	}
	for field, value := range spec {
		if isNull(value) {
			delete(spec, field)
		}
	}
	object["spec"] = mustMarshal(spec)
	return nil
}

// fromCanonical is what Seal and Open have in common: it takes a MachineConfig in its canonical form and checks that it
// is a rendered one.
func fromCanonical(canonical []byte, pool string) (*Snapshot, error) {
	object, metadata, err := openObject(canonical)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{pool: pool, digest: digestOf(canonical), machineConfig: canonical, overlays: []byte("[]")}
	if json.Unmarshal(metadata["name"], &s.name) != nil || !validName(s.name) {
		return nil, &NotRenderedError{"/metadata/name", "want the object's name in lower-case letters, digits, '-' and '.'"}
	}
	spec, err := members(object["spec"], "/spec")
	if err != nil {
		return nil, err
	}
	const field = "/spec/config"
	config, err := members(spec["config"], field)
	if err != nil {
		return nil, err
	}
	head, err := members(config["ignition"], field+"/ignition")
	if err != nil {
		return nil, err
	}
	var version string
	if json.Unmarshal(head["version"], &version) != nil || version == "" {
		return nil, &NotRenderedError{field + "/ignition/version", "missing or not text; a rendered config carries a whole Ignition config"}
	}
	s.spec, s.ignition = object["spec"], spec["config"]
	return s, nil
}

// openObject takes a scanned document apart and checks that it is a MachineConfig.
func openObject(doc []byte) (object, metadata map[string]json.RawMessage, err error) {
	if object, err = members(doc, ""); err != nil {
		return nil, nil, err
	}
	for field, want := range map[string]string{"apiVersion": machineConfigAPI, "kind": "MachineConfig"} {
		var got string
		if json.Unmarshal(object[field], &got) != nil || got != want {
			return nil, nil, &NotRenderedError{"/" + field, "want " + want}
		}
	}
	metadata, err = members(object["metadata"], "/metadata")
	return object, metadata, err
}

// members takes one scanned JSON object apart. Its values are parts of it as they stand, not copies: a config is nearly
// all one value, which is looked through and not built again.
func members(object json.RawMessage, field string) (map[string]json.RawMessage, error) {
	taken := map[string]json.RawMessage{}
	// The scan has looked for duplicate names and invalid UTF-8 already.
	dec := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	token, err := dec.ReadToken()
	for err == nil && token.Kind() == jsontext.KindBeginObject && dec.PeekKind() != jsontext.KindEndObject {
		var value jsontext.Value
		name, naming := dec.ReadToken()
		key := name.String() // the token is gone with the next read
		if value, err = dec.ReadValue(); err == nil && naming == nil {
			end := int(dec.InputOffset())
			taken[key] = json.RawMessage(object[end-len(value) : end : end])
		}
	}
	if err != nil || len(taken) == 0 {
		if field == "" {
			field = "/"
		}
		return nil, &NotRenderedError{field, "missing, empty or not an object"}
	}
	return taken, nil
}

func isNull(value json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(value), []byte("null")) }

// dnsSubdomain is how Kubernetes names these objects (RFC 1123); names that pass are safe in paths and URLs.
var dnsSubdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

func validName(name string) bool { return len(name) <= 253 && dnsSubdomain.MatchString(name) }

func checkPool(pool string) error {
	if !validName(pool) {
		return &NotRenderedError{"/pool", "want the MachineConfigPool's name in lower-case letters, digits, '-' and '.'"}
	}
	return nil
}
