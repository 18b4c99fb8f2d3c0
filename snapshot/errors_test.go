// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/snapshot"
)

// is is true for errors of one type.
func is[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }

const minimal = `{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","metadata":{"name":"rendered-x-1"},"spec":{"config":{"ignition":{"version":"3.4.0"}}%s}}`

// Each way for a rendered config to be wrong is a type of its own, and its text names the field and the remedy.
func TestSealRefuses(t *testing.T) {
	with := func(more string) string { return fmt.Sprintf(minimal, more) }
	for name, tc := range map[string]struct {
		rendered string
		kind     func(error) bool
		says     string
	}{
		"nothing":            {"", is[*snapshot.NotJSONError], "empty"},
		"cut short":          {with("")[:100], is[*snapshot.NotJSONError], "ends too early"},
		"a list":             {"[]", is[*snapshot.NotJSONError], "not an object"},
		"text":               {"hello", is[*snapshot.NotJSONError], "not an object"},
		"two documents":      {"a: 1\n---\nb: 2\n", is[*snapshot.NotJSONError], "more than one"},
		"JSON and more":      {with("") + "{}", is[*snapshot.NotJSONError], "more follows"},
		"invalid UTF-8":      {with(",\"x\":\"\xff\""), is[*snapshot.NotJSONError], "after byte"},
		"a lone surrogate":   {with(`,"x":"\ud800"`), is[*snapshot.NotJSONError], "after byte"},
		"broken YAML":        {"a: b\n  c: {\n", is[*snapshot.NotJSONError], "line "},
		"duplicate key":      {with(`,"x":{"a":1,"a":2}`), is[*snapshot.DuplicateKeyError], "/spec/x/a"},
		"duplicate, escaped": {with(`,"x":{"a":1,"\u0061":2}`), is[*snapshot.DuplicateKeyError], "/spec/x/a"},
		"duplicate in YAML":  {"a: 1\nb: {c: 1, c: 2}\n", is[*snapshot.DuplicateKeyError], "/b/c"},
		"2^53":               {with(`,"x":[9007199254740992]`), is[*snapshot.InexactNumberError], "/spec/x/0"},
		"-(2^53+1)":          {with(`,"x":-9007199254740993`), is[*snapshot.InexactNumberError], "/spec/x"},
		"2^53 in disguise":   {with(`,"x":1e20`), is[*snapshot.InexactNumberError], "/spec/x"},
		"too many digits":    {with(`,"x":0.10000000000000000001`), is[*snapshot.InexactNumberError], "/spec/x"},
		"overflow":           {with(`,"x":1e400`), is[*snapshot.InexactNumberError], "/spec/x"},
		"underflow":          {with(`,"x":1e-999999999999`), is[*snapshot.InexactNumberError], "/spec/x"},
		"big in YAML":        {"a: [1, 99999999999999999999]\n", is[*snapshot.InexactNumberError], "/a/1"},
		"infinity in YAML":   {"a: .inf\n", is[*snapshot.InexactNumberError], "/a"},
		"another kind":       {strings.Replace(with(""), "MachineConfig", "ConfigMap", 1), is[*snapshot.NotRenderedError], "/kind"},
		"another API":        {strings.Replace(with(""), "openshift.io", "example.org", 1), is[*snapshot.NotRenderedError], "/apiVersion"},
		"no name":            {strings.Replace(with(""), "rendered-x-1", "", 1), is[*snapshot.NotRenderedError], "/metadata/name"},
		"a name with a path": {strings.Replace(with(""), "rendered-x-1", "../x", 1), is[*snapshot.NotRenderedError], "/metadata/name"},
		"no spec":            {`{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","metadata":{"name":"x"}}`, is[*snapshot.NotRenderedError], "/spec"},
		"empty config":       {strings.Replace(with(""), `{"ignition":{"version":"3.4.0"}}`, "{}", 1), is[*snapshot.NotRenderedError], "/spec/config"},
		"no version":         {strings.Replace(with(""), `"version":"3.4.0"`, `"a":1`, 1), is[*snapshot.NotRenderedError], "/spec/config/ignition/version"},
		"a list for a spec":  {strings.Replace(with(""), `{"config":{"ignition":{"version":"3.4.0"}}}`, `[1]`, 1), is[*snapshot.NotRenderedError], "/spec"},
		"too large":          {with(`,"x":"` + strings.Repeat("a", snapshot.MaxSealed) + `"`), is[*snapshot.TooLargeError], "8388608"},
		"deep nesting":       {with(`,"x":` + strings.Repeat("[", 100_000)), is[*snapshot.NotJSONError], "byte"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := snapshot.Seal([]byte(tc.rendered), "worker")
			if err == nil || !tc.kind(err) || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("Seal = %T %v, want another type or %q in the text", err, err, tc.says)
			}
			if strings.ContainsRune(err.Error(), '\n') || len(err.Error()) > 300 {
				t.Errorf("not one short line: %q", err)
			}
		})
	}
	for _, pool := range []string{"", "../x", "Worker", "a/b", strings.Repeat("a", 254)} {
		if _, err := snapshot.Seal(renderedYAML(t), pool); !is[*snapshot.NotRenderedError](err) {
			t.Errorf("pool %q: %v", pool, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	whole := string(sealed(t).Bytes())
	for name, tc := range map[string]struct {
		sealed string
		kind   func(error) bool
		says   string
	}{
		"nothing":               {"", is[*snapshot.NotJSONError], "empty"},
		"null":                  {"null", is[*snapshot.NotJSONError], "not an object"},
		"cut short":             {whole[:len(whole)/2], is[*snapshot.NotJSONError], "ends too early"},
		"another kind":          {strings.Replace(whole, snapshot.Kind, "ConfigMap", 1), is[*snapshot.KindError], "ConfigMap"},
		"another version":       {strings.Replace(whole, "mcsnap/v1", "mcsnap/v9", 1), is[*snapshot.KindError], "mcsnap/v9"},
		"no head":               {"{}", is[*snapshot.KindError], "mcsnap/v1"},
		"a changed value":       {strings.Replace(whole, "console=ttyS0", "console=ttyS1", 1), is[*snapshot.DigestError], string(sealed(t).Digest())},
		"a changed digest":      {strings.Replace(whole, "sha256:", "sha256:0", 1), is[*snapshot.DigestError], string(sealed(t).Digest())},
		"no digest":             {strings.Replace(whole, `"digest"`, `"digset"`, 1), is[*snapshot.DigestError], string(sealed(t).Digest())},
		"no config":             {`{"apiVersion":"mcsnap/v1","kind":"MachineConfigSnapshot"}`, is[*snapshot.NotRenderedError], "/machineConfig"},
		"pool is a path":        {strings.Replace(whole, `"pool":"worker"`, `"pool":"../../x"`, 1), is[*snapshot.NotRenderedError], "/pool"},
		"no pool":               {strings.Replace(whole, `"pool":"worker"`, `"pool":7`, 1), is[*snapshot.NotRenderedError], "/pool"},
		"overlays not a list":   {strings.Replace(whole, `"overlays":[]`, `"overlays":{}`, 1), is[*snapshot.NotRenderedError], "/overlays"},
		"a duplicate":           {strings.Replace(whole, `"pool":`, `"pool":"a","pool":`, 1), is[*snapshot.DuplicateKeyError], "/pool"},
		"an inexact number":     {strings.Replace(whole, `"answer":42`, `"answer":9007199254740993`, 1), is[*snapshot.InexactNumberError], "/machineConfig/spec/futureField/nested/answer"},
		"larger than it can be": {whole + strings.Repeat(" ", snapshot.MaxSealed), is[*snapshot.TooLargeError], "8388608"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := snapshot.Open([]byte(tc.sealed))
			if err == nil || !tc.kind(err) || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("Open = %T %v, want another type or %q in the text", err, err, tc.says)
			}
		})
	}
}

func TestDigestMismatchNamesBothSides(t *testing.T) {
	damaged := bytes.Replace(sealed(t).Bytes(), []byte("quiet"), []byte("quieT"), 1)
	_, err := snapshot.Open(damaged)
	mismatch, ok := errors.AsType[*snapshot.DigestError](err)
	if !ok || mismatch.Want != string(sealed(t).Digest()) || mismatch.Got == sealed(t).Digest() {
		t.Fatalf("Open = %v, want a DigestError with the claim and the content's digest", err)
	}
}

// Any single flipped bit of a snapshot is noticed, or is one that does not change what the document says.
func TestEveryFlippedBitIsNoticedOrHarmless(t *testing.T) {
	whole := sealed(t).Bytes()
	for at := range whole {
		flipped := bytes.Clone(whole)
		flipped[at] ^= 1 << (at % 8)
		s, err := snapshot.Open(flipped)
		if err == nil && !bytes.Equal(s.MachineConfig(), sealed(t).MachineConfig()) {
			t.Fatalf("byte %d flipped: opened as another config", at)
		}
	}
}

// No error of this package quotes what a config holds: it may be a pull secret.
func TestErrorsKeepSecrets(t *testing.T) {
	const secret = "S3CR3T"
	for _, doc := range []string{
		`{"spec": ` + secret, secret + ": [", "a: *" + secret, "a: !!" + secret + " b\n", `{"a":"` + secret + "\x01" + `"}`,
		fmt.Sprintf(minimal, `,"x":"`+secret+`","y":1e999`), `{"a":` + secret + `}`, "a: {b: " + secret + "\n",
	} {
		_, sealErr := snapshot.Seal([]byte(doc), "worker")
		_, openErr := snapshot.Open([]byte(doc))
		_, extractErr := snapshot.Extract([]byte(doc))
		for _, err := range []error{sealErr, openErr, extractErr} {
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%q: %v", doc, err)
			}
		}
	}
}
