// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/snapshot"
)

// large is a rendered config of the size that real clusters have, 160 KB.
func large() []byte {
	var files strings.Builder
	for i := range 50 {
		fmt.Fprintf(&files, `,{"path":"/etc/file-%d","mode":420,"contents":{"source":"data:,%s"}}`, i, strings.Repeat("line%20of%20text%0A", 170))
	}
	return fmt.Appendf(nil, minimal, `,"x":[1`+files.String()+`]`)
}

func BenchmarkSeal(b *testing.B) {
	doc := large()
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := snapshot.Seal(doc, "worker"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	s, err := snapshot.Seal(large(), "worker")
	if err != nil {
		b.Fatal(err)
	}
	doc := s.Bytes()
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := snapshot.Open(doc); err != nil {
			b.Fatal(err)
		}
	}
}
