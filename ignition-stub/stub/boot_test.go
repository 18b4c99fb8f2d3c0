// SPDX-License-Identifier: Apache-2.0

package stub_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_4/types"

	"github.com/mcsnap/mcsnap/e2e/lab"
	"github.com/mcsnap/mcsnap/ignition-stub/fetch/fetchtest"
	"github.com/mcsnap/mcsnap/ignition-stub/stub"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// The real Ignition fetches every stub that render can make, of every version it reads, and writes the same root.
func TestRealIgnitionReadsEveryStub(t *testing.T) {
	old, fresh := fetchtest.NewCA(t, "old"), fetchtest.NewCA(t, "new")
	snippet := stub.Snippet{Name: "hostname.ign", Config: []byte(`{"ignition":{"version":"3.0.0"},"storage":{"files":[
		{"path":"/etc/hostname","overwrite":true,"contents":{"source":"data:,node-7"}}]}}`)}
	var first string
	for _, version := range stub.Versions[1:] {
		for name, change := range map[string]func(*stub.Options){
			"plain":            func(*stub.Options) {},
			"two CAs, old one": func(o *stub.Options) { o.CAs = [][]byte{old.PEM, fresh.PEM} },
			"gzip":             func(o *stub.Options) { o.Gzip = true },
			"token":            func(o *stub.Options) { o.Token = fetchtest.Token },
			"all":              func(o *stub.Options) { o.Gzip, o.Token, o.CAs = true, fetchtest.Token, [][]byte{old.PEM, fresh.PEM} },
		} {
			o := stub.Options{Version: version, Pool: "worker", CAs: [][]byte{fresh.PEM}, HTTPTotal: 20, Snippets: []stub.Snippet{snippet}}
			change(&o)
			if version < stub.V3_1 && (o.Gzip || o.Token != "") || version != stub.DefaultVersion && name != "plain" && name != "all" {
				continue // one by one in one version, together in all
			}
			o.URL = configServer(t, fresh.Issue(t), version, o.Token)
			made, err := stub.Render(o)
			if err != nil {
				t.Fatalf("%s, %s: %v", version, name, err)
			}
			root := filepath.Join(t.TempDir(), "root")
			lab.ApplyIgnition(t, made.JSON, root)
			token, err := os.ReadFile(filepath.Join(root, stub.TokenPath))
			if (err == nil) != (o.Token != "") || strings.TrimSpace(string(token)) != o.Token {
				t.Errorf("%s, %s: the agent's token: %q, %v", version, name, token, err)
			}
			os.RemoveAll(filepath.Join(root, filepath.Dir(stub.TokenPath)))
			switch listing := list(t, root); {
			case first == "":
				if first = listing; !strings.Contains(first, "/etc/hostname -rw-r--r-- node-7") || !strings.Contains(first, "served") {
					t.Fatalf("the snippet does not win over the server's config, or that is missing:\n%s", first)
				}
			case listing != first:
				t.Errorf("%s, %s: another root:\n%s\nwant\n%s", version, name, listing, first)
			}
		}
	}
}

// So do the Ignitions of the past, each of the newest version it reads: a stub may be valid today and beyond them.
func TestOldIgnitionsReadTheirStubs(t *testing.T) {
	for version, ignition := range map[stub.Version]lab.Old{stub.V2_2: lab.Ignition035, stub.V3_0: lab.Ignition221, stub.V3_1: lab.Ignition260} {
		old, fresh := fetchtest.NewCA(t, "old"), fetchtest.NewCA(t, "new")
		o := stub.Options{Version: version, Pool: "worker", CAs: [][]byte{old.PEM, fresh.PEM}, HTTPTotal: 20}
		filesystem := map[bool]string{true: `"filesystem":"root","overwrite":true,`, false: `"overwrite":true,`}[version == stub.V2_2]
		o.Snippets = []stub.Snippet{{Name: "hostname.ign", Config: fmt.Appendf(nil, `{"ignition":{"version":%q},"storage":{"files":[
			{%s"path":"/etc/hostname","contents":{"source":"data:,%s"}}]}}`, version, filesystem, strings.Repeat("node-7", 100))}}
		if version >= stub.V3_1 {
			o.Gzip, o.Token = true, fetchtest.Token // and the snippet is long enough to be compressed
		}
		o.URL = configServer(t, fresh.Issue(t), version, o.Token)
		made, err := stub.Render(o)
		if err != nil {
			t.Fatal(err)
		}
		root := filepath.Join(t.TempDir(), "root")
		ignition.Apply(t, made.JSON, root)
		for path, want := range map[string]string{"etc/motd": "served", "etc/hostname": strings.Repeat("node-7", 100)} {
			if text, err := os.ReadFile(filepath.Join(root, path)); err != nil || string(text) != want {
				t.Errorf("%s: %s holds %.40q, %v; want %.40q", version, path, text, err, want)
			}
		}
	}
}

// configServer serves a small config as mcs does: /config/worker and .gz, in the version asked for, to those who have
// the token. It returns its URL.
func configServer(t *testing.T, certificate tls.Certificate, version stub.Version, token string) string {
	t.Helper()
	body := fmt.Appendf(nil, `{"ignition":{"version":%q},"storage":{"files":[
		{"path":"/etc/motd","mode":420,"contents":{"source":"data:,served"}},
		{"path":"/etc/hostname","mode":420,"contents":{"source":"data:,localhost"}}]}}`, version)
	if version == stub.V2_2 {
		body = bytes.ReplaceAll(body, []byte(`"path"`), []byte(`"filesystem":"root","path"`))
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case token != "" && r.Header.Get("Authorization") != "Bearer "+token:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/config/worker":
			w.Write(body)
		case r.URL.Path == "/config/worker.gz":
			w.Write(contents.Compress(body))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// list is every file of a root with its mode and contents.
func list(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(name string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.HasSuffix(name, "ignition-result.json") || strings.HasSuffix(name, ".ignition-result.json") {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		fmt.Fprintf(&all, "%s %s %s\n", strings.TrimPrefix(name, root), info.Mode(), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func parse(t *testing.T, config []byte) (parsed types.Config) {
	t.Helper()
	if err := json.Unmarshal(config, &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func pemOf(raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

// noise is bytes that do not compress, always the same.
func noise(n int) []byte {
	source := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for range n {
		b.WriteByte(byte(source.Uint32()))
	}
	return b.Bytes()
}
