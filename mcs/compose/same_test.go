// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/specver"
)

// The same inputs give the same bytes, however often and from however many goroutines, and are not changed by it (field
// cases 22, 108; run with -race).
func TestSameBytes(t *testing.T) {
	const goroutines, renders = 8, 1000
	f := load(t, "testdata/ours.yaml")
	in := everything(f.snapshot)
	before := bytes.Clone(f.snapshot.Bytes())
	first, err := compose.Compose(in, specver.V3_5)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() {
			for i := range renders / goroutines {
				// Bodies for other versions in between: nothing of theirs may stay behind.
				if i%25 == 0 {
					for _, v := range []specver.Version{specver.V2_2, specver.V3_0, specver.V3_2} {
						if _, err := compose.Compose(in, v); err != nil {
							t.Error(err)
						}
					}
				}
				again, err := compose.Compose(in, specver.V3_5)
				if err != nil || !bytes.Equal(again.JSON, first.JSON) || !bytes.Equal(again.Gzip, first.Gzip) || again.ETag != first.ETag {
					t.Errorf("render %d differs: %v", i, err)
					return
				}
			}
		})
	}
	group.Wait()
	if !bytes.Equal(before, f.snapshot.Bytes()) {
		t.Error("composing changed the snapshot")
	}
}

// Gzip is the same document, and the validators are of what they say.
func TestValidators(t *testing.T) {
	body, err := compose.Compose(everything(load(t, "testdata/files.yaml").snapshot), specver.V3_5)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := gzip.NewReader(bytes.NewReader(body.Gzip))
	if err != nil {
		t.Fatal(err)
	}
	inflated, err := io.ReadAll(stream)
	if err != nil || !bytes.Equal(inflated, body.JSON) {
		t.Errorf("the gzip stream is another document: %v", err)
	}
	if !stream.ModTime.IsZero() || stream.Name != "" {
		t.Errorf("the gzip stream has a time or a name: %v %q", stream.ModTime, stream.Name)
	}
	for _, served := range []struct {
		bytes        []byte
		etag, digest string
	}{{body.JSON, body.ETag, body.ReprDigest}, {body.Gzip, body.GzipETag, body.GzipReprDigest}} {
		sum := sha256.Sum256(served.bytes)
		if served.etag != `"`+hex.EncodeToString(sum[:])+`"` || served.digest != "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":" {
			t.Errorf("validators %s %s are not of these bytes", served.etag, served.digest)
		}
	}
}

// Ignition warns of bits it takes away; the body has no such warning, and the log can have the rendered config's.
func TestWarnings(t *testing.T) {
	body, err := compose.Compose(everything(load(t, "testdata/special-bits-old.yaml").snapshot), specver.V3_5)
	if err != nil {
		t.Fatal(err)
	}
	if len(body.Warnings) != 2 || !strings.Contains(body.Warnings[1], "storage.files.0.mode: setuid") {
		t.Errorf("got %q", body.Warnings)
	}
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
