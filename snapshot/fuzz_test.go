// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/mcsnap/mcsnap/snapshot"
)

// values seed the fuzzers with what canonicalization is known to get wrong.
var values = []string{
	`null`, `"é"`, `"é"`, `"\u2028<&>"`, `1`, `1.0`, `10e-1`, `-0`, `0.1`, `9007199254740991`, `1e300`, `[]`, `{}`,
	`{"a":1,"b":{"c":[true,null,"x"]}}`, `{"b":2,"a":1}`, `{"":0}`, `{"\ud83d\ude00":1,"\ufb33":2}`, `"\ud800"`,
	`{"a":1,"a":2}`, `1e999`, `9007199254740993`, "\"\xff\"", `[[[[[[]]]]]]`, `"\u0000"`,
}

// config is a rendered config with one value that the fuzzer chooses, where nothing is dropped from it.
func config(value string) []byte {
	return fmt.Appendf(nil, minimal, `,"fuzzed":{"value":`+value+`}`)
}

// decode is the oracle's own reader: encoding/json knows nothing of canonical forms.
func decode(t *testing.T, doc []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(doc, &value); err != nil {
		t.Fatalf("accepted, but encoding/json says: %v", err)
	}
	return value
}

// Open(Seal(x)) gives x, value for value; and however x is formatted, its digest is the same.
func FuzzSealThenOpen(f *testing.F) {
	for _, value := range values {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		s, err := snapshot.Seal(config(value), "worker")
		if err != nil {
			return
		}
		opened, err := snapshot.Open(s.Bytes())
		if err != nil {
			t.Fatalf("sealed, but does not open: %v", err)
		}
		want := decode(t, config(value))
		if got := decode(t, opened.MachineConfig()); !reflect.DeepEqual(got, want) {
			t.Fatalf("opened as %v, sealed as %v", got, want)
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, config(value), "", "  "); err != nil {
			t.Fatal(err)
		}
		resorted, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		for _, formatted := range [][]byte{indented.Bytes(), resorted} {
			again, err := snapshot.Seal(formatted, "worker")
			if err != nil {
				t.Fatalf("reformatted to %s, no longer seals: %v", formatted, err)
			}
			if again.Digest() != s.Digest() {
				t.Fatalf("reformatted to %s, another digest", formatted)
			}
		}
	})
}

// Two configs have one digest if and only if they parse to the same values.
func FuzzDigestIsValue(f *testing.F) {
	for i, value := range values {
		f.Add(value, values[(i+1)%len(values)])
	}
	f.Add(`{"a":"1"}`, `{"a":1}`)
	f.Add(`[1,2]`, `[2,1]`)
	f.Fuzz(func(t *testing.T, one, other string) {
		a, errA := snapshot.Seal(config(one), "worker")
		b, errB := snapshot.Seal(config(other), "worker")
		if errA != nil || errB != nil {
			return
		}
		same := reflect.DeepEqual(decode(t, config(one)), decode(t, config(other)))
		if (a.Digest() == b.Digest()) != same {
			t.Fatalf("values equal: %v, digests %s and %s", same, a.Digest(), b.Digest())
		}
	})
}

// Whatever a disk or a network hands us is an error or a verified snapshot, never a panic; and what opens says the same
// when it is written and opened again.
func FuzzOpen(f *testing.F) {
	f.Add(sealed(f).Bytes())
	for _, value := range values {
		f.Add([]byte(value))
		f.Add(bytes.Replace(sealed(f).Bytes(), []byte(`"overlays":[]`), []byte(`"overlays":`+value), 1))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		s, err := snapshot.Open(doc)
		if err != nil {
			return
		}
		again, err := snapshot.Open(s.WithOverlays(s.Overlays()).Bytes())
		if err != nil || again.Digest() != s.Digest() || !snapshot.SameConfig(again, s) {
			t.Fatalf("opened, but not again: %v", err)
		}
		if _, err := s.Export(""); err != nil {
			t.Fatalf("opened, but cannot be exported: %v", err)
		}
	})
}

// Rendered configs come from files that people edit: JSON, YAML, or neither.
func FuzzSealYAML(f *testing.F) {
	f.Add(renderedYAML(f))
	for _, doc := range []string{"a: &x [*x]", "<<: {a: 1}", "? {a: b}\n: c", "a: !!binary AA==", "0x1F: 0b11", "a: 2001-01-01", "- 1", "~", "\t"} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		s, err := snapshot.Seal(doc, "worker")
		if err != nil {
			return
		}
		if opened, err := snapshot.Open(s.Bytes()); err != nil || opened.Digest() != s.Digest() {
			t.Fatalf("sealed, but does not open: %v", err)
		}
	})
}

// Extract(Embed(config, s)) gives s for every config that Embed takes.
func FuzzEmbedThenExtract(f *testing.F) {
	for _, version := range specVersions {
		f.Add(fmt.Appendf(nil, `{"ignition":{"version":%q},"storage":{"files":[{"path":"/etc/mcd-snapshot.json"}],"links":null}}`, version))
	}
	f.Fuzz(func(t *testing.T, ignition []byte) {
		if _, err := snapshot.Extract(ignition); err == nil {
			return // carries one already
		}
		embedded, err := snapshot.Embed(ignition, sealed(t))
		if err != nil {
			return
		}
		if got, err := snapshot.Extract(embedded); err != nil || got.Digest() != sealed(t).Digest() {
			t.Fatalf("embedded, but does not come out: %v", err)
		}
	})
}
