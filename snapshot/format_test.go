// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/snapshot"
)

// docs/snapshot-format.md is what readers in other languages build on: its example opens, its limits and error types are
// the code's.
func TestTheDocumentedFormatIsTheFormat(t *testing.T) {
	raw, err := os.ReadFile("../docs/snapshot-format.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(raw)
	_, example, _ := strings.Cut(doc, "<!-- snapshot -->\n```json\n")
	example, _, found := strings.Cut(example, "```")
	if !found {
		t.Fatal("no example block")
	}
	s, err := snapshot.Open([]byte(example))
	if err != nil {
		t.Fatalf("the example does not open: %v", err)
	}
	if len(s.Overlays()) != 1 || s.Pool() != "worker" {
		t.Errorf("overlays %v, pool %q", s.Overlays(), s.Pool())
	}
	for _, err := range []any{
		&snapshot.NotJSONError{}, &snapshot.KindError{}, &snapshot.DigestError{}, &snapshot.DuplicateKeyError{},
		&snapshot.InexactNumberError{}, &snapshot.NotRenderedError{}, &snapshot.TooLargeError{},
		&snapshot.PathTakenError{}, &snapshot.NoSnapshotError{},
	} {
		if name := "`*" + reflect.TypeOf(err).Elem().Name() + "`"; !strings.Contains(doc, name) {
			t.Errorf("%s is not in the table of errors", name)
		}
	}
	if snapshot.MaxSealed != 8<<20 || !strings.Contains(doc, "more than 8 MiB") {
		t.Error("the documented limit is not the code's")
	}
}
