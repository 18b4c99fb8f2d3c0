// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"
)

// Open reads a sealed snapshot and verifies it: a nil error means that the machineConfig is, value for value, the one
// that was sealed. Members it does not know, written by a newer mcsnap, are kept.
func Open(sealed []byte) (*Snapshot, error) {
	if len(sealed) > MaxSealed {
		return nil, &TooLargeError{What: "the snapshot", Size: int64(len(sealed)), Limit: MaxSealed}
	}
	if err := scan(sealed); err != nil {
		return nil, err
	}
	doc, err := members(sealed, "")
	if err != nil { // an empty object
		return nil, &KindError{}
	}
	var head struct{ apiVersion, kind, digest, pool string }
	for key, into := range map[string]*string{
		"apiVersion": &head.apiVersion, "kind": &head.kind, "digest": &head.digest, "pool": &head.pool,
	} {
		_ = json.Unmarshal(doc[key], into) // what is not text stays empty and is refused below
		delete(doc, key)
	}
	if head.apiVersion != APIVersion || head.kind != Kind {
		return nil, &KindError{APIVersion: head.apiVersion, Kind: head.kind}
	}
	canonical, err := canonicalize(doc["machineConfig"])
	if err != nil {
		return nil, &NotRenderedError{"/machineConfig", "missing"}
	}
	if got := digestOf(canonical); head.digest != string(got) {
		return nil, &DigestError{Want: head.digest, Got: got}
	}
	if err := checkPool(head.pool); err != nil {
		return nil, err
	}
	s, err := fromCanonical(canonical, head.pool)
	if err != nil {
		return nil, err
	}
	if err := s.takeOverlays(doc["overlays"]); err != nil {
		return nil, err
	}
	delete(doc, "machineConfig")
	delete(doc, "overlays")
	for key, value := range doc {
		if doc[key], err = jcs.Transform(value); err != nil {
			return nil, &NotJSONError{Cause: err}
		}
	}
	s.extra = doc
	return s, nil
}

// canonicalize is a scanned value's RFC 8785 form. What a server sealed is in it already, and finding that out is quicker
// than making it.
func canonicalize(value json.RawMessage) ([]byte, error) {
	canonical := jsontext.Value(value).Clone()
	if canonical.Canonicalize() == nil && bytes.Equal(canonical, value) {
		return canonical, nil
	}
	return jcs.Transform(value)
}

// takeOverlays keeps the overlays as they stand, unknown members included, once they are known to be readable.
func (s *Snapshot) takeOverlays(overlays json.RawMessage) error {
	if len(overlays) == 0 || isNull(overlays) {
		return nil
	}
	var readable []Overlay
	canonical, err := jcs.Transform(overlays)
	if err == nil {
		err = json.Unmarshal(canonical, &readable)
	}
	if err != nil {
		return &NotRenderedError{"/overlays", "want a list of {path, reason, sha256}"}
	}
	s.overlays = canonical
	return nil
}

// LoadFile opens the snapshot in a file, by default of a node the one at [Path]. It reads no more than [MaxSealed]
// bytes. Errors name the file.
func LoadFile(path string) (*Snapshot, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("loading the snapshot: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read
	sealed, err := io.ReadAll(io.LimitReader(file, MaxSealed+1))
	if err != nil {
		return nil, fmt.Errorf("loading the snapshot: %w", err)
	}
	s, err := Open(sealed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}
