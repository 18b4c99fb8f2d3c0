// SPDX-License-Identifier: Apache-2.0

package stub

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
)

// Unwrap takes user-data out of the forms that [Stub.Write] makes, and that operators copy from clouds and clusters:
// base64, a Secret of Machine API or Cluster API. What is none of them is returned as it is.
func Unwrap(text []byte) []byte {
	trimmed := bytes.TrimSpace(text)
	if decoded, err := base64.StdEncoding.AppendDecode(nil, trimmed); err == nil && len(decoded) > 0 && decoded[0] == '{' {
		return decoded
	}
	var secret struct {
		Kind string
		Data map[string][]byte
	}
	if json.Unmarshal(trimmed, &secret) != nil || secret.Kind != "Secret" {
		return text
	}
	for _, key := range []string{"userData", "value"} {
		if inside := secret.Data[key]; len(inside) > 0 {
			return inside
		}
	}
	return text
}
