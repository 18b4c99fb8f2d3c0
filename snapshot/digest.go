// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	digestPrefix = "sha256:"
	pathPrefix   = "sha256-"
)

// Digest identifies a snapshot by its content: "sha256:" and 64 lower-case hexadecimal digits, the SHA-256 of the
// RFC 8785 (JCS) form of the machineConfig. Values come from [ParseDigest], [ParsePathDigest] or a [Snapshot]; they are
// safe to use in file names and URLs in their [Digest.PathForm].
type Digest string

// ParseDigest reads the form used in documents and annotations, "sha256:<64 hex>".
func ParseDigest(s string) (Digest, error) { return parseDigest(s, digestPrefix) }

// ParsePathDigest reads the form used in URLs and file names, "sha256-<64 hex>".
func ParsePathDigest(s string) (Digest, error) { return parseDigest(s, pathPrefix) }

func parseDigest(s, prefix string) (Digest, error) {
	digits, ok := strings.CutPrefix(s, prefix)
	if !ok || len(digits) != hex.EncodedLen(sha256.Size) || strings.Trim(digits, "0123456789abcdef") != "" {
		if len(s) > 80 {
			s = s[:80] + "…"
		}
		return "", fmt.Errorf("digest %q: want %q and 64 lower-case hexadecimal digits", s, prefix)
	}
	return Digest(digestPrefix + digits), nil
}

func digestOf(canonical []byte) Digest {
	sum := sha256.Sum256(canonical)
	return Digest(digestPrefix + hex.EncodeToString(sum[:]))
}

// Hex returns the 64 hexadecimal digits.
func (d Digest) Hex() string { return strings.TrimPrefix(string(d), digestPrefix) }

// PathForm returns "sha256-<64 hex>", which needs no escaping in a URL or a file name.
func (d Digest) PathForm() string { return pathPrefix + d.Hex() }
