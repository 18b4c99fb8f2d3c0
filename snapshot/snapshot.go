// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/gowebpki/jcs"
)

const (
	// APIVersion and Kind stand at the head of every snapshot. The version is the format's own and independent of
	// Ignition's, so that an old agent still verifies what a new server sealed.
	APIVersion = "mcsnap/v1"
	Kind       = "MachineConfigSnapshot"

	// Path is where a node finds its snapshot.
	Path = "/etc/mcd-snapshot.json"

	// MaxSealed is the largest snapshot that is sealed or opened, in bytes of JSON.
	MaxSealed = 8 << 20
)

// Snapshot is a verified, immutable copy of one rendered MachineConfig. The zero value is of no use; [Seal] and [Open]
// make them. It is safe for use by several goroutines.
type Snapshot struct {
	pool          string
	digest        Digest
	name          string
	machineConfig []byte                     // RFC 8785 form
	spec          []byte                     // RFC 8785 form, within machineConfig
	ignition      []byte                     // RFC 8785 form, within machineConfig
	overlays      []byte                     // RFC 8785 form of an array
	extra         map[string]json.RawMessage // members a newer mcsnap wrote
}

// Digest identifies the content.
func (s *Snapshot) Digest() Digest { return s.digest }

// SpecDigest is the digest of the spec alone: what stays the same when upstream updates annotations in place.
func (s *Snapshot) SpecDigest() Digest { return digestOf(s.spec) }

// Name is the rendered config's metadata.name, as a node's annotations give it.
func (s *Snapshot) Name() string { return s.name }

// Pool is the MachineConfigPool that the config was rendered for. It is outside the digest.
func (s *Snapshot) Pool() string { return s.pool }

// MachineConfig returns the rendered object as the controller made it, in RFC 8785 form, less what is not content. The
// caller must not change it.
func (s *Snapshot) MachineConfig() []byte { return s.machineConfig }

// IgnitionConfig returns the object's spec.config in RFC 8785 form. The caller must not change it.
func (s *Snapshot) IgnitionConfig() []byte { return s.ignition }

// SameConfig reports whether a and b ask the same of a node: same name, same spec. Their digests may differ, since
// upstream updates annotations and labels of a rendered config in place.
func SameConfig(a, b *Snapshot) bool {
	return a.name == b.name && bytes.Equal(a.spec, b.spec)
}

// Bytes returns the sealed document, one line of JSON. It depends on the snapshot alone: the same content gives the
// same bytes on every server and in every run.
func (s *Snapshot) Bytes() []byte {
	doc := make([]byte, 0, len(s.machineConfig)+len(s.overlays)+512)
	member := func(key string, value []byte) {
		separator := byte(',')
		if len(doc) == 0 {
			separator = '{'
		}
		doc = append(doc, separator)
		doc = append(append(append(doc, quote(key)...), ':'), value...)
	}
	member("apiVersion", quote(APIVersion))
	member("kind", quote(Kind))
	member("digest", quote(string(s.digest)))
	member("pool", quote(s.pool))
	member("machineConfig", s.machineConfig)
	member("overlays", s.overlays)
	for _, key := range slices.Sorted(maps.Keys(s.extra)) {
		member(key, s.extra[key])
	}
	return append(doc, '}', '\n')
}

// Export returns the rendered MachineConfig as an object of the API again, in one line of JSON, with the pool's
// ownerReference that sealing dropped: upstream's daemon and node controller read it. poolUID is the pool's uid in the
// cluster, or "" where it is not known (as OpenShift's own bootstrap writes it).
func (s *Snapshot) Export(poolUID string) ([]byte, error) {
	object, metadata, err := openObject(s.machineConfig)
	if err != nil {
		return nil, err
	}
	metadata["ownerReferences"] = mustMarshal([]map[string]any{{
		"apiVersion":         machineConfigAPI,
		"kind":               "MachineConfigPool",
		"name":               s.pool,
		"uid":                poolUID,
		"controller":         true,
		"blockOwnerDeletion": true,
	}})
	if object["metadata"], err = jcs.Transform(mustMarshal(metadata)); err != nil {
		return nil, &NotJSONError{Cause: err}
	}
	exported, err := join(object)
	if err != nil {
		return nil, &NotJSONError{Cause: err}
	}
	return append(exported, '\n'), nil
}

// join is the RFC 8785 form of an object whose members are in it already: the spec, which is nearly all of a config, is
// copied and not parsed again. RFC 8785 orders keys by their UTF-16 form, which is that of their bytes up to U+FFFF.
func join(object map[string]json.RawMessage) ([]byte, error) {
	size := 2
	for key, value := range object {
		if strings.ContainsFunc(key, func(r rune) bool { return r > 0xFFFF }) {
			return jcs.Transform(mustMarshal(object))
		}
		size += len(key) + len(value) + 4
	}
	joined := make([]byte, 0, size)
	separator := byte('{')
	for _, key := range slices.Sorted(maps.Keys(object)) {
		name, err := jcs.Transform(quote(key))
		if err != nil {
			return nil, err
		}
		joined = append(append(append(append(joined, separator), name...), ':'), object[key]...)
		separator = ','
	}
	return append(joined, '}'), nil
}

// quote is a JSON string without the escapes that encoding/json adds for HTML.
func quote(s string) []byte {
	var quoted bytes.Buffer
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always has a JSON form
	}
	return bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))
}

// mustMarshal is for values made of strings, maps and JSON that was scanned before: they always have a JSON form.
func mustMarshal(value any) []byte {
	marshalled, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return marshalled
}
