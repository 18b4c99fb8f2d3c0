// SPDX-License-Identifier: Apache-2.0

package wanted

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_6/types"

	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// Resource is content: in the config, or at another address.
type Resource struct {
	Source      string
	Compression string
	Hash        string // verification.hash; "" when the config has none
}

func resource(r types.Resource) Resource {
	var read Resource
	for to, from := range map[*string]*string{&read.Source: r.Source, &read.Compression: r.Compression, &read.Hash: r.Verification.Hash} {
		if from != nil {
			*to = *from
		}
	}
	return read
}

// Remote tells whether the content is not in the config.
func (r Resource) Remote() bool { return r.Source != "" && !strings.HasPrefix(r.Source, "data:") }

var errHash = errors.New("the content does not match its verification.hash")

// Bytes is the content as it lands on disk. No error quotes it.
func (r Resource) Bytes() ([]byte, error) {
	data, err := contents.Decode(r.Source, r.Compression, contents.MaxInflated)
	if err != nil {
		return nil, err
	}
	if r.Hash != "" && !Matches(data, r.Hash) {
		return nil, errHash
	}
	return data, nil
}

// Matches tells whether data has a hash in Ignition's form: sha512-<hex> or sha256-<hex>.
func Matches(data []byte, hash string) bool {
	function, digits, _ := strings.Cut(hash, "-")
	var sum []byte
	switch function {
	case "sha512":
		full := sha512.Sum512(data)
		sum = full[:]
	case "sha256":
		full := sha256.Sum256(data)
		sum = full[:]
	default:
		return false
	}
	return strings.EqualFold(hex.EncodeToString(sum), digits)
}

// Remote tells whether any content of the file is not in the config.
func (f File) Remote() bool {
	for _, more := range f.Append {
		if more.Remote() {
			return true
		}
	}
	return f.Contents != nil && f.Contents.Remote()
}

// Bytes is the file's content on top of base, which is what was there before (nil where nothing was).
func (f File) Bytes(base []byte) ([]byte, error) {
	data := base
	if f.Contents != nil {
		read, err := f.Contents.Bytes()
		if err != nil {
			return nil, err
		}
		data = read
	}
	suffix, err := f.Suffix()
	if err != nil {
		return nil, err
	}
	return append(append([]byte{}, data...), suffix...), nil
}

// Suffix is what the file's append entries add.
func (f File) Suffix() ([]byte, error) {
	var suffix []byte
	for _, more := range f.Append {
		data, err := more.Bytes()
		if err != nil {
			return nil, err
		}
		if suffix = append(suffix, data...); len(suffix) > contents.MaxInflated {
			return nil, contents.ErrTooLarge
		}
	}
	return suffix, nil
}
