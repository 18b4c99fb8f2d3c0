// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/vincent-petithory/dataurl"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// The snapshot must not double what is served: at most half as much again as the rendered config where Ignition reads gzip,
// and where it does not, base64 that decodes to the same bytes, pinned by sha512 (field case 72).
func TestEmbeddingCost(t *testing.T) {
	s := seal(t, syntheticConfig(68, 4250))
	rendered := len(s.MachineConfig())
	if rendered < 350_000 || rendered > 450_000 {
		t.Fatalf("the synthetic config has %d bytes, want about 400,000", rendered)
	}
	in := everything(s)
	in.CompatContentFile = false
	for _, v := range specver.All[:7] {
		body, err := compose.Compose(in, v)
		if err != nil {
			t.Fatal(err)
		}
		ratio := float64(len(body.JSON)) / float64(rendered)
		if !v.Less(specver.V3_1) {
			if ratio > 1.5 {
				t.Errorf("%s: %.2f times the rendered config, want at most 1.5", v, ratio)
			}
			continue
		}
		var doc struct {
			Storage struct {
				Files []struct {
					Path     string
					Contents struct {
						Source, Compression string
						Verification        struct{ Hash string }
					}
				}
			}
		}
		if err := json.Unmarshal(body.JSON, &doc); err != nil {
			t.Fatal(err)
		}
		for _, f := range doc.Storage.Files {
			if f.Path != snapshot.Path {
				continue
			}
			sealed := read(t, f.Contents.Source, f.Contents.Compression)
			if !strings.HasPrefix(f.Contents.Source, "data:;base64,") || f.Contents.Compression != "" || f.Contents.Verification.Hash != contents.Verification([]byte(sealed)) {
				t.Errorf("%s: the snapshot is not plain base64 pinned by sha512", v)
			}
			if inside, err := snapshot.Open([]byte(sealed)); err != nil || inside.Digest() != s.Digest() {
				t.Errorf("%s: the snapshot inside: %v", v, err)
			}
		}
	}
}

// syntheticConfig has files of words, escaped as OpenShift escapes them. The same numbers give the same config.
func syntheticConfig(files, size int) string {
	random := rand.New(rand.NewPCG(1, 2))
	var list []string
	for i := range files {
		var text strings.Builder
		for text.Len() < size {
			fmt.Fprintf(&text, "option%d.%x = %d # word%d\n", random.IntN(90), random.IntN(1<<20), random.IntN(9999), random.IntN(300))
		}
		list = append(list, fmt.Sprintf(`{"path":"/etc/synthetic/%d.conf","mode":420,"overwrite":true,"contents":{"source":"data:,%s"}}`,
			i, dataurl.EscapeString(text.String())))
	}
	return `{"ignition":{"version":"3.5.0"},"storage":{"files":[` + strings.Join(list, ",") + `]}}`
}
