// SPDX-License-Identifier: Apache-2.0

// Package contents turns the contents of an Ignition file (a data URL, perhaps of gzip) into bytes and back, bounded
// and without changing a byte of what lands on disk. It knows nothing of snapshots or of remote sources.
package contents

import (
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/vincent-petithory/dataurl"
)

// MaxInflated is the largest file that compressed contents may grow into, in bytes. It is enforced while inflating, so
// that a gzip bomb costs no more than this much memory.
const MaxInflated = 64 << 20

// Gzip is Ignition's name for the one compression it knows.
const Gzip = "gzip"

// ErrTooLarge says that contents inflate to more than their limit.
var ErrTooLarge = errors.New("the contents inflate beyond their limit")

// ErrRemote says that contents are not in the config but at another URL.
var ErrRemote = errors.New("the contents are not a data URL")

// Decode returns the bytes that Ignition writes for contents with this source and compression, up to limit bytes. An
// empty source is an empty file. Only data URLs are read; others are [ErrRemote].
func Decode(source, compression string, limit int64) ([]byte, error) {
	var raw []byte
	if source != "" {
		if len(source) < 5 || source[:5] != "data:" {
			return nil, ErrRemote
		}
		decoded, err := dataurl.DecodeString(source)
		if err != nil {
			return nil, errors.New("the data URL is malformed") // the parser quotes what it read
		}
		raw = decoded.Data
	}
	switch compression {
	case "":
		if int64(len(raw)) > limit {
			return nil, ErrTooLarge
		}
		return raw, nil
	case Gzip:
		return Inflate(raw, limit)
	default:
		return nil, fmt.Errorf("compression %.20q: Ignition knows only %q", compression, Gzip)
	}
}

// Inflate returns what a gzip stream inflates to and stops as soon as that passes limit bytes.
func Inflate(compressed []byte, limit int64) ([]byte, error) {
	stream, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("inflating the contents: %w", err)
	}
	inflated, err := io.ReadAll(io.LimitReader(stream, limit+1))
	if err != nil {
		return nil, fmt.Errorf("inflating the contents: %w", err)
	}
	if int64(len(inflated)) > limit {
		return nil, ErrTooLarge
	}
	return inflated, nil
}

// Compress returns data as a gzip stream of best compression, which depends on data alone: no name, no time.
func Compress(data []byte) []byte {
	var compressed bytes.Buffer
	stream := compressors.Get().(*gzip.Writer)
	defer compressors.Put(stream)
	stream.Reset(&compressed)
	_, err := stream.Write(data)
	if err == nil {
		err = stream.Close()
	}
	if err != nil {
		panic(err) // writes to memory do not fail
	}
	return compressed.Bytes()
}

// compressors are kept because a new one clears more than a megabyte, for files of a few hundred bytes each.
var compressors = sync.Pool{New: func() any {
	stream, err := gzip.NewWriterLevel(nil, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is a known one
	}
	return stream
}}

// Base64 returns a data URL of data.
func Base64(data []byte) string {
	return "data:;base64," + base64.StdEncoding.EncodeToString(data)
}

// Verification returns Ignition's verification.hash for contents that inflate to data. It is sha512, the one function
// that every spec version knows (3.0 and 2.x have no sha256).
func Verification(data []byte) string {
	sum := sha512.Sum512(data)
	return "sha512-" + hex.EncodeToString(sum[:])
}
