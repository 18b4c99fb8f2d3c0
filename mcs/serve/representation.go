// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// representation is one sequence of bytes with all that is said about it, ready to be sent: made once, shared by every
// request, never changed.
type representation struct {
	data   []byte
	header []field
}

type field struct {
	key   string // in canonical form
	value []string
}

// newRepresentation computes what can be said of any bytes: strong validator and digest (RFC 9530).
func newRepresentation(data []byte, contentType string, more ...field) *representation {
	sum := sha256.Sum256(data)
	return described(data, contentType, `"`+hex.EncodeToString(sum[:])+`"`,
		"sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":", more...)
}

// described makes a representation of bytes whose validator and digest are known.
func described(data []byte, contentType, etag, reprDigest string, more ...field) *representation {
	return &representation{data: data, header: append([]field{
		{"Content-Type", []string{contentType}},
		{"Content-Length", []string{strconv.Itoa(len(data))}},
		{"Etag", []string{etag}},
		{"Repr-Digest", []string{reprDigest}},
		{"Accept-Ranges", []string{"bytes"}},
		{"X-Content-Type-Options", noSniff},
	}, more...)}
}

// conditional lists the headers that ask for anything but the whole body.
var conditional = []string{"Range", "If-None-Match", "If-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"}

// send answers with the representation: one write, or by the standard library's rules where a client asks for a part
// or for a newer one. It returns the status and how many bytes of body were written.
func (r *representation) send(w http.ResponseWriter, req *http.Request) (status int, written int64) {
	h := w.Header()
	for _, f := range r.header {
		h[f.key] = f.value
	}
	for _, name := range conditional {
		if req.Header[name] != nil {
			counted := &counting{ResponseWriter: w, status: http.StatusOK}
			http.ServeContent(counted, req, "", time.Time{}, bytes.NewReader(r.data))
			return counted.status, counted.written
		}
	}
	if req.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return http.StatusOK, 0
	}
	n, _ := w.Write(r.data)
	return http.StatusOK, int64(n)
}

// counting remembers what was answered through it.
type counting struct {
	http.ResponseWriter
	status  int
	written int64
}

func (c *counting) WriteHeader(status int) {
	if status >= 400 { // no body of ours: what describes one does not belong here
		h := c.Header()
		for _, name := range []string{"Repr-Digest", "Etag", "Content-Encoding"} {
			delete(h, name)
		}
		if status == http.StatusPreconditionFailed { // it comes without a body, but with the length of ours
			h["Content-Length"] = []string{"0"}
			delete(h, "Content-Type")
		}
	}
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *counting) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.written += int64(n)
	return n, err
}
