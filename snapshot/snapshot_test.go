// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcsnap/mcsnap/snapshot"
)

var update = flag.Bool("update", false, "write the golden files anew")

func renderedYAML(t testing.TB) []byte {
	t.Helper()
	doc, err := os.ReadFile("testdata/rendered-worker.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func sealed(t testing.TB) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Seal(renderedYAML(t), "worker")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// golden compares got with a file that readers of the format can look at, and that a change of the format must touch.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; if the format was meant to change, run the test with -update and say so in docs/snapshot-format.md\ngot  %s\nwant %s", path, got, want)
	}
}

// The sealed form is a promise to every server and agent out there: the same object gives these very bytes.
func TestSealedFormIsStable(t *testing.T) {
	s := sealed(t)
	golden(t, "rendered-worker.snapshot.json", s.Bytes())
	exported, err := s.Export("0a0b0c0d-0000-4000-8000-000000000000")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "rendered-worker.export.json", exported)
	embedded, err := snapshot.Embed([]byte(`{"ignition":{"version":"3.0.0"}}`), s)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "rendered-worker.ign", append(embedded, '\n'))
}

func TestOpenGivesBackWhatWasSealed(t *testing.T) {
	s := sealed(t).WithOverlays([]snapshot.Overlay{
		{Path: "/etc/z", Reason: "controllerconfig", SHA256: "ff"},
		{Path: "/etc/a", Reason: "credentials", SHA256: "00"},
	})
	opened, err := snapshot.Open(s.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(opened.Bytes(), s.Bytes()) {
		t.Errorf("sealed again:\ngot  %s\nwant %s", opened.Bytes(), s.Bytes())
	}
	if opened.Digest() != sealed(t).Digest() {
		t.Error("overlays changed the digest: rotation must never change identity")
	}
	if got := opened.Overlays(); len(got) != 2 || got[0].Path != "/etc/a" || got[1].Reason != "controllerconfig" {
		t.Errorf("overlays = %v, want both, ordered by path", got)
	}
	if opened.Pool() != "worker" || opened.Name() != "rendered-worker-0123456789abcdef0123456789abcdef" {
		t.Errorf("pool %q, name %q", opened.Pool(), opened.Name())
	}
}

// Field case 33: an agent built two releases ago still verifies what a newer server sealed, and drops nothing of it.
func TestMembersOfANewerServerSurvive(t *testing.T) {
	newer := bytes.Replace(sealed(t).Bytes(), []byte(`"kind":`), []byte(`"zFuture":{"b":1,"a":[true]},"aFuture":7,"kind":`), 1)
	s, err := snapshot.Open(newer)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(s.Bytes(), []byte(`,"aFuture":7,"zFuture":{"a":[true],"b":1}}`+"\n")) {
		t.Errorf("the unknown members are not at the end of %s", s.Bytes())
	}
}

func TestReformattingNeverChangesTheDigest(t *testing.T) {
	want := sealed(t)
	var indented bytes.Buffer
	if err := json.Indent(&indented, want.Bytes(), " ", "\t"); err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(want.Bytes(), &decoded); err != nil {
		t.Fatal(err)
	}
	resorted, err := json.Marshal(decoded) // other order of members, other escapes
	if err != nil {
		t.Fatal(err)
	}
	for name, doc := range map[string][]byte{"indented": indented.Bytes(), "sorted": resorted} {
		got, err := snapshot.Open(doc)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%s: another snapshot", name)
		}
	}
}

// The canonical form is not ours to get wrong: a second implementation of RFC 8785 must agree.
func TestCanonicalFormAgreesWithAnotherImplementation(t *testing.T) {
	other := jsontext.Value(bytes.Clone(sealed(t).MachineConfig()))
	if err := other.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(other, sealed(t).MachineConfig()) {
		t.Errorf("jsontext says %s\nwe say %s", other, sealed(t).MachineConfig())
	}
}

// What belongs to an object's life in one cluster is not content: the same config in two clusters is one snapshot.
func TestBookkeepingIsNotContent(t *testing.T) {
	plain := sealed(t).MachineConfig()
	again, err := snapshot.Seal(plain, "worker")
	if err != nil {
		t.Fatal(err)
	}
	if again.Digest() != sealed(t).Digest() {
		t.Error("sealing the content alone gives another digest")
	}
	for _, gone := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "finalizers",
		"managedFields", "ownerReferences", "last-applied", `"extensions":null`} {
		if strings.Contains(string(plain), gone) {
			t.Errorf("%s is still in %s", gone, plain)
		}
	}
	for _, kept := range []string{`"futureField"`, `"nothing":null`, `"futureSection":[1,2,3]`, `"kernelType":""`, `"mode":420`} {
		if !strings.Contains(string(plain), kept) {
			t.Errorf("%s is lost from %s", kept, plain)
		}
	}
}

// Upstream updates annotations of a rendered config in place: another digest, the same config.
func TestSameConfig(t *testing.T) {
	variant := func(old, new string) *snapshot.Snapshot {
		s, err := snapshot.Seal(bytes.Replace(renderedYAML(t), []byte(old), []byte(new), 1), "worker")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, tc := range []struct {
		name, old, new string
		same           bool
	}{
		{"nothing changed", "v1.2.3", "v1.2.3", true},
		{"an annotation", "v1.2.3", "v1.2.4", true},
		{"a label", `"yes"`, `"no"`, true},
		{"the spec", "quiet", "loud", false},
		{"an unknown field of the spec", "answer: 42", "answer: 43", false},
		{"the name", "rendered-worker-0", "rendered-worker-1", false},
	} {
		if got := snapshot.SameConfig(sealed(t), variant(tc.old, tc.new)); got != tc.same {
			t.Errorf("%s: SameConfig = %v, want %v", tc.name, got, tc.same)
		}
	}
}

func TestLoadFileNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcd-snapshot.json")
	if _, err := snapshot.LoadFile(path); !os.IsNotExist(unwrapAll(err)) || !strings.Contains(err.Error(), path) {
		t.Errorf("missing file: %v", err)
	}
	if err := os.WriteFile(path, sealed(t).Bytes()[:1000], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := snapshot.LoadFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("cut file: %v", err)
	}
	if err := os.WriteFile(path, sealed(t).Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := snapshot.LoadFile(path); err != nil || s.Digest() != sealed(t).Digest() {
		t.Errorf("whole file: %v, %v", s, err)
	}
}

func unwrapAll(err error) error {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		if err = inner.Unwrap(); err == nil {
			return nil
		}
		if os.IsNotExist(err) {
			return err
		}
	}
}
