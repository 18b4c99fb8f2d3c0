// SPDX-License-Identifier: Apache-2.0

package inspect_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/ignition-stub/inspect"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

const base = `{"ignition":{"version":"3.4.0"},"kernelArguments":{"shouldExist":["quiet","nosmt"]},
	"passwd":{"users":[{"name":"core","passwordHash":"S3CR3T","sshAuthorizedKeys":["ssh-ed25519 AAAA core"]},{"name":"root"}]},
	"storage":{"files":[{"path":"/etc/a","mode":420,"contents":{"source":"data:,S3CR3T%0A"}},{"path":"/etc/b","mode":384,"contents":{"source":"data:,b"}}]},
	"systemd":{"units":[{"name":"a.service","enabled":true,"contents":"S3CR3T"},{"name":"b.service","dropins":[{"name":"10.conf","contents":"S3CR3T"}]}]},
	"future":{"thing":{"x":1}}}`

func TestScreen(t *testing.T) {
	screen := read(t, base).Screen()
	for _, want := range []string{"Ignition config, spec 3.4.0", "file /etc/a  contents 7 bytes", "mode 0644", "unit a.service", "drop-in 10.conf 6 bytes",
		"user core", "passwordHash 6 bytes", "sshAuthorizedKeys 1", "quiet", "future.thing", "no snapshot in it"} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q in\n%s", want, screen)
		}
	}
	if strings.Contains(screen, "S3CR3T") {
		t.Errorf("a secret in\n%s", screen)
	}
}

func TestDiff(t *testing.T) {
	packed := contents.Base64(contents.Compress([]byte("S3CR3T\n")))
	for name, c := range map[string]struct {
		old, fresh string // replaced in the second
		want       inspect.Outcome
		says       string
	}{
		"nothing":            {"", "", inspect.Same, ""},
		"order of members":   {`{"name":"root"}`, `{ "name" : "root" }`, inspect.Same, ""},
		"order of files":     {`{"path":"/etc/a","mode":420,"contents":{"source":"data:,S3CR3T%0A"}},{"path":"/etc/b","mode":384,"contents":{"source":"data:,b"}}`, `{"path":"/etc/b","mode":384,"contents":{"source":"data:,b"}},{"path":"/etc/a","mode":420,"contents":{"source":"data:,S3CR3T%0A"}}`, inspect.LooksOnly, "file: in another order"},
		"encoding":           {"data:,b", "data:;base64,Yg==", inspect.LooksOnly, "contents as written"},
		"gzip":               {`"source":"data:,S3CR3T%0A"`, `"compression":"gzip","source":"` + packed + `"`, inspect.LooksOnly, "contents as written"},
		"contents":           {"data:,b", "data:,c", inspect.Different, "file /etc/b: contents: 1 bytes"},
		"mode":               {"384", "420", inspect.Different, "mode: 0600, and 0644"},
		"a file more":        {`"files":[`, `"files":[{"path":"/etc/c"},`, inspect.Different, "file /etc/c: only in the second"},
		"a unit less":        {`{"name":"b.service","dropins":[{"name":"10.conf","contents":"S3CR3T"}]}`, `{"name":"c.service"}`, inspect.Different, "unit b.service: only in the first"},
		"a drop-in":          {`"10.conf","contents":"S3CR3T"`, `"10.conf","contents":"s3cr3t"`, inspect.Different, "drop-in 10.conf: another value"},
		"a password":         {`"passwordHash":"S3CR3T"`, `"passwordHash":"s3cr3t"`, inspect.Different, "passwordHash: another value"},
		"kernel arguments":   {`["quiet","nosmt"]`, `["nosmt","quiet"]`, inspect.Different, "kernelArguments.shouldExist"},
		"the version":        {"3.4.0", "3.3.0", inspect.Different, "ignition.version: 3.4.0, and 3.3.0"},
		"what nobody knows":  {`{"x":1}`, `{"x":2}`, inspect.Different, "future.thing"},
		"one path two times": {`{"path":"/etc/b"`, `{"path":"/etc/a"`, inspect.Different, "file /etc/b: only in the first"},
	} {
		t.Run(name, func(t *testing.T) {
			second := strings.Replace(base, c.old, c.fresh, 1)
			outcome, differences := inspect.Diff(read(t, base), read(t, second))
			text := ""
			for _, d := range differences {
				text += fmt.Sprintf("%s: %s\n", d.What, d.Text)
			}
			if outcome != c.want || !strings.Contains(text, c.says) || strings.Contains(text, "S3CR3T") || strings.Contains(text, "s3cr3t") {
				t.Errorf("%s\n%s; want %s with %q", outcome, text, c.want, c.says)
			}
			if back, _ := inspect.Diff(read(t, second), read(t, base)); back != outcome {
				t.Errorf("the other way round: %s", back)
			}
		})
	}
}

func TestSnapshots(t *testing.T) {
	sealed, err := os.ReadFile("../../snapshot/testdata/rendered-worker.snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Open(sealed)
	if err != nil {
		t.Fatal(err)
	}
	embedded, err := snapshot.Embed([]byte(`{"ignition":{"version":"3.4.0"}}`), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(sealed), string(embedded)} {
		if names := read(t, text).Names; names == nil || names.Verdict != "verifies" || names.Pool != "worker" || names.Digest != string(s.Digest()) {
			t.Errorf("%+v", names)
		}
	}
	if outcome, differences := inspect.Diff(read(t, string(sealed)), read(t, string(s.MachineConfig()))); outcome != inspect.Same {
		t.Errorf("a snapshot and its MachineConfig: %s, %+v", outcome, differences)
	}
	damaged := strings.Replace(string(sealed), "quiet", "quiEt", 1)
	if names := read(t, damaged).Names; names == nil || !strings.Contains(names.Verdict, "digest mismatch") {
		t.Errorf("damaged: %+v", names)
	}
	if outcome, _ := inspect.Diff(read(t, string(sealed)), read(t, damaged)); outcome != inspect.Different {
		t.Errorf("damaged: %s", outcome)
	}
	for _, text := range []string{"", "null", "[]", "{}", `{"kind":"MachineConfig"}`, "<html>"} {
		if _, err := inspect.Read([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		} else if _, ok := errors.AsType[*inspect.InputError](err); !ok {
			t.Errorf("%q: %T", text, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(base))
	f.Add([]byte(`{"ignition":{"config":{"merge":[null]},"security":1},"storage":{"files":[{"path":1,"append":{},"contents":[]}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := inspect.Read(text)
		if err != nil {
			return
		}
		b, err := inspect.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		a.Screen()
		if outcome, differences := inspect.Diff(a, b); outcome != inspect.Same {
			t.Fatalf("it differs from itself: %s %+v", outcome, differences)
		}
	})
}

func read(t *testing.T, text string) *inspect.Document {
	t.Helper()
	d, err := inspect.Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}
