// SPDX-License-Identifier: Apache-2.0

package stub

import (
	"bytes"
	"encoding/json"

	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// addSnippets puts each snippet behind the server's config, as a config of its own: what comes later wins, and the
// snippet keeps its spec version.
func (s *Stub) addSnippets(o Options, d *document) error {
	for _, snippet := range o.Snippets {
		field := "snippet " + snippet.Name
		var head struct {
			Ignition struct {
				Version Version `json:"version"`
				Config  json.RawMessage
			} `json:"ignition"`
		}
		if err := json.Unmarshal(snippet.Config, &head); err != nil {
			return wrong(field, "not JSON; if it is a Butane config, translate it with butane first")
		}
		version := head.Ignition.Version
		switch {
		case !version.known():
			return wrong(field, "spec version %.20q is none of %s", string(version), versionList())
		case (version == V2_2) != (o.Version == V2_2):
			return wrong(field, "spec %s cannot go into a stub of spec %s: no Ignition reads both", version, o.Version)
		case version > o.Version:
			return wrong(field, "spec %s is newer than the stub's %s; render with --spec %[1]s or newer", version, o.Version)
		}
		warnings, err := Validate(snippet.Config)
		if err != nil {
			return wrong(field, "%v", err)
		}
		for _, w := range warnings {
			s.warn("%s: %s", field, w)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, snippet.Config); err != nil {
			return wrong(field, "not JSON: %v", err)
		}
		r := reference{Source: dataURL(compact.Bytes()), name: field}
		if packed := dataURL(contents.Compress(compact.Bytes())); o.Version >= V3_1 && len(packed)+22 < len(r.Source) {
			r.Source, r.Compression = packed, contents.Gzip
		}
		d.merge(r)
	}
	return nil
}
