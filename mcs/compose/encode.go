// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/coreos/ignition/v2/config/util"
	"github.com/coreos/ignition/v2/config/v3_6/types"

	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// encoding is one way to write the same contents.
type encoding struct{ source, compression string }

// size is what the encoding costs in a JSON body, in bytes.
func (e encoding) size() int {
	size := len(e.source)
	if e.compression != "" {
		size += len(`"compression":"gzip",`)
	}
	return size
}

func (e encoding) put(res *types.Resource) {
	res.Source, res.Compression = &e.source, nil
	if e.compression != "" {
		res.Compression = util.StrToPtr(e.compression)
	}
}

// encode writes data the shortest way: escaped text, base64, or (where the version reads it) gzip in base64.
func encode(data []byte, gzipKnown bool) encoding {
	best := encoding{source: escape(data)}
	if base64.StdEncoding.EncodedLen(len(data))+len("data:;base64,") < len(best.source) {
		best.source = contents.Base64(data)
	}
	const tooShort = 64 // gzip's own frame is 18 bytes, and base64 adds a third
	if gzipKnown && len(data) > tooShort {
		if e := (encoding{contents.Base64(contents.Compress(data)), contents.Gzip}); e.size() < best.size() {
			best = e
		}
	}
	return best
}

// plain are the characters that may stand in a data URL as themselves: RFC 2397's, less those that net/url or JSON would
// take for something else. OpenShift escapes more; Ignition reads both.
var plain = func() (set [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~!*'()/:,;=@$+") {
		set[c] = true
	}
	return set
}()

// escape is data as a data URL of escaped text.
func escape(data []byte) string {
	const digits = "0123456789ABCDEF"
	var url bytes.Buffer
	url.Grow(len(data) + len(data)/2)
	url.WriteString("data:,")
	for _, c := range data {
		if plain[c] {
			url.WriteByte(c)
			continue
		}
		url.Write([]byte{'%', digits[c>>4], digits[c&15]})
	}
	return url.String()
}

// verify compares contents with Ignition's verification.hash; "" is no hash.
func verify(data []byte, hash string) error {
	if hash == "" {
		return nil
	}
	function, want, _ := strings.Cut(hash, "-")
	var got string
	switch function {
	case "sha256":
		sum := sha256.Sum256(data)
		got = hex.EncodeToString(sum[:])
	case "sha512":
		sum := sha512.Sum512(data)
		got = hex.EncodeToString(sum[:])
	default:
		return errors.New("the hash function is not one Ignition knows")
	}
	if !strings.EqualFold(got, want) {
		return errors.New("the contents have another hash, and a node would stop there")
	}
	return nil
}
