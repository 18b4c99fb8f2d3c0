// SPDX-License-Identifier: Apache-2.0

package stub

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
)

// document is a stub as it is written, in the fields of 2.2 and 3.x that it uses. The order of fields is the order in
// the text.
type document struct {
	Ignition ignition `json:"ignition"`
	Storage  *storage `json:"storage,omitempty"`
}

type ignition struct {
	Version  Version   `json:"version"`
	Config   config    `json:"config"`
	Security *security `json:"security,omitempty"`
	Timeouts *timeouts `json:"timeouts,omitempty"`
	Proxy    *proxy    `json:"proxy,omitempty"`
}

type config struct {
	Merge  []reference `json:"merge,omitempty"`
	Append []reference `json:"append,omitempty"` // what 2.x calls it
}

type reference struct {
	Source      string   `json:"source"`
	Compression string   `json:"compression,omitempty"`
	HTTPHeaders []header `json:"httpHeaders,omitempty"`

	name string // for messages
}

type header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type security struct {
	TLS struct {
		CertificateAuthorities []reference `json:"certificateAuthorities"`
	} `json:"tls"`
}

type timeouts struct {
	HTTPResponseHeaders *int `json:"httpResponseHeaders,omitempty"`
	HTTPTotal           *int `json:"httpTotal,omitempty"`
}

type proxy struct {
	HTTPProxy  string   `json:"httpProxy,omitempty"`
	HTTPSProxy string   `json:"httpsProxy,omitempty"`
	NoProxy    []string `json:"noProxy,omitempty"`
}

type storage struct {
	Files []file `json:"files"`
}

type file struct {
	Path      string    `json:"path"`
	Mode      int       `json:"mode"`
	Overwrite bool      `json:"overwrite"`
	Contents  reference `json:"contents"`
}

// merge adds a config that goes over those before it.
func (d *document) merge(r reference) {
	if d.Ignition.Version == V2_2 {
		d.Ignition.Config.Append = append(d.Ignition.Config.Append, r)
	} else {
		d.Ignition.Config.Merge = append(d.Ignition.Config.Merge, r)
	}
}

// target is the reference to the server's config.
func (d *document) target() *reference {
	if d.Ignition.Version == V2_2 {
		return &d.Ignition.Config.Append[0]
	}
	return &d.Ignition.Config.Merge[0]
}

func (d *document) trust(r reference) {
	if d.Ignition.Security == nil {
		d.Ignition.Security = &security{}
	}
	tls := &d.Ignition.Security.TLS
	tls.CertificateAuthorities = append(tls.CertificateAuthorities, r)
}

// encode writes one line of JSON. Characters of URLs stay as they are.
func encode(v any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err) // only strings, numbers and lists of them
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// dataURL is base64, not percent-encoded: a stub is embedded into other documents, which would escape it once more.
func dataURL(data []byte) string {
	return "data:;base64," + base64.StdEncoding.EncodeToString(data)
}

func oneWord(s string) bool { return s != "" && !strings.ContainsAny(s, " \t\r\n\x00") }
