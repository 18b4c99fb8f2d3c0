// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/gowebpki/jcs"
)

// Overlay names a file that is served with newer content than was rendered (a rotated CA, a credential), so that a
// drift check knows what differs on purpose. Overlays are outside the digest: rotation never changes identity.
type Overlay struct {
	Path   string `json:"path"`   // absolute path on the node
	Reason string `json:"reason"` // where the served content comes from, in one word
	SHA256 string `json:"sha256"` // of the served content, 64 hexadecimal digits
}

// Overlays returns what was served on top of the rendered config, ordered by path.
func (s *Snapshot) Overlays() []Overlay {
	var overlays []Overlay
	if err := json.Unmarshal(s.overlays, &overlays); err != nil {
		panic(err) // read once by Open, or written by WithOverlays
	}
	return overlays
}

// WithOverlays returns a copy that names overlays instead of those it had. The digest stays.
func (s *Snapshot) WithOverlays(overlays []Overlay) *Snapshot {
	sorted := slices.SortedFunc(slices.Values(overlays), func(a, b Overlay) int { return cmp.Compare(a.Path, b.Path) })
	if sorted == nil {
		sorted = []Overlay{}
	}
	canonical, err := jcs.Transform(mustMarshal(sorted))
	if err != nil {
		panic(err) // encoding/json writes well-formed JSON
	}
	with := *s
	with.overlays = canonical
	return &with
}
