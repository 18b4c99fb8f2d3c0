// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"strings"
)

// Verify returns a [DigestError] unless data has the digest, "sha256-" or "sha512-" and hexadecimal digits. A digest of
// another form is an [InputError].
func Verify(data []byte, digest string) error {
	function, sum, err := parseDigest(digest)
	if err != nil {
		return err
	}
	h := function()
	h.Write(data)
	if got := hex.EncodeToString(h.Sum(nil)); got != sum {
		name, _, _ := strings.Cut(digest, "-")
		return &DigestError{Want: digest, Got: name + "-" + got}
	}
	return nil
}

func parseDigest(digest string) (function func() hash.Hash, sum string, err error) {
	name, sum, _ := strings.Cut(digest, "-")
	length := 0
	switch name {
	case "sha256":
		function, length = sha256.New, sha256.Size
	case "sha512":
		function, length = sha512.New, sha512.Size
	}
	sum = strings.ToLower(sum)
	if raw, bad := hex.DecodeString(sum); bad != nil || function == nil || len(raw) != length {
		return nil, "", &InputError{"digest", "want sha256- or sha512- and its hexadecimal digits"}
	}
	return function, sum, nil
}
