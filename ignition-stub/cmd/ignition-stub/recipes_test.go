// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch/fetchtest"
	"github.com/mcsnap/mcsnap/ignition-stub/stub"
)

// TestMain lets this test's program be ignition-stub itself, so that recipes run in a shell run what was compiled.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "ignition-stub" {
		main()
	}
	os.Exit(m.Run())
}

// shop is a folder in which the recipes of docs/stubs.md work: a server, its CA, an old CA, a token, the program.
type shop struct{ dir, server string }

func newShop(t *testing.T) *shop {
	t.Helper()
	old, fresh := fetchtest.NewCA(t, "root-ca"), fetchtest.NewCA(t, "root-ca")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/config/worker":
			fmt.Fprintf(w, `{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/motd","mode":420,"contents":{"source":"https://%s/motd"}}]}}`, r.Host)
		case "/motd":
			io.WriteString(w, "hello\n")
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{fresh.Issue(t)}}
	server.StartTLS()
	t.Cleanup(server.Close)
	s := &shop{dir: t.TempDir(), server: server.URL}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(s.dir, "ignition-stub")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"ca.crt": fresh.PEM, "old-ca.crt": old.PEM, "token": []byte(fetchtest.Token + "\n")} {
		if err := os.WriteFile(filepath.Join(s.dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// run runs a script as a person would, and returns its exit code and what it said.
func (s *shop) run(t *testing.T, script string) (code int, stdout, stderr string) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "sh", "-eu", "-c", script)
	shell.Dir = s.dir
	shell.Env = []string{"PATH=" + s.dir + ":" + os.Getenv("PATH"), "SERVER=" + s.server, "HOME=" + s.dir}
	var out, errs strings.Builder
	shell.Stdout, shell.Stderr = &out, &errs
	err := shell.Run()
	if err != nil && shell.ProcessState == nil {
		t.Fatal(err)
	}
	return shell.ProcessState.ExitCode(), out.String(), errs.String()
}

// Every recipe of docs/stubs.md works, word for word, in the order of the page.
func TestRecipes(t *testing.T) {
	page, err := os.ReadFile("../../../docs/stubs.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newShop(t)
	blocks := strings.Split(string(page), "```sh\n")[1:]
	if len(blocks) < 10 {
		t.Fatalf("%d recipes; the page has more", len(blocks))
	}
	for _, block := range blocks {
		recipe, _, _ := strings.Cut(block, "```")
		if code, out, errs := s.run(t, recipe); code != 0 {
			t.Errorf("exit code %d of\n%s\n%s%s", code, recipe, out, errs)
		}
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "*.ign"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range append(files, filepath.Join(s.dir, "secret.json")) {
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 && filepath.Base(file) != "hostname.ign" {
			t.Errorf("%s: %v, %v; want mode 0600", file, info.Mode(), err)
		}
	}
	whole, err := os.ReadFile(filepath.Join(s.dir, "whole.ign"))
	if err != nil || !strings.Contains(string(whole), "/etc/motd") {
		t.Errorf("%s, %v", whole, err)
	}
	for _, v := range stub.Versions { // the table says what the program says
		if row := "| " + strings.TrimSuffix(string(v), ".0"); !strings.Contains(string(page), "| "+v.ReadBy()+" |\n") || !strings.Contains(string(page), row) {
			t.Errorf("the page does not say that %s is read by %s", v, v.ReadBy())
		}
	}
	for name, limit := range stub.Platforms {
		if limit.Bytes > 0 && !strings.Contains(string(page), fmt.Sprintf("| %s | %d bytes |", name, limit.Bytes)) {
			t.Errorf("the page does not say that %s takes %d bytes", name, limit.Bytes)
		}
	}
}

func TestExitCodes(t *testing.T) {
	s := newShop(t)
	wrong := "sha256-" + strings.Repeat("0", 64)
	for script, want := range map[string]struct {
		code int
		says string
	}{
		"ignition-stub":                                                             {0, "doctor"},
		"ignition-stub --version":                                                   {0, "unknown"},
		"ignition-stub nonsense":                                                    {2, "unknown command"},
		"ignition-stub render":                                                      {2, "--url is missing"},
		"ignition-stub render --nonsense":                                           {2, "see --help"},
		"ignition-stub render --url x extra":                                        {2, "unexpected argument"},
		"ignition-stub render --url $SERVER":                                        {3, "names no config"},
		"ignition-stub render --url $SERVER/config/w --ca token":                    {3, "no certificate in it"},
		"ignition-stub render --url $SERVER/config/w --ca none.crt":                 {4, "none.crt"},
		"ignition-stub render --url $SERVER/config/w -o /proc/none":                 {4, "/proc"},
		"ignition-stub render --url $SERVER/config/w --timeout-total 1500ms":        {2, "whole seconds"},
		"mkdir -p d; ignition-stub render --url $SERVER/config/w -o d":              {4, "is a folder"},
		"ignition-stub fetch":                                                       {2, "name a stub"},
		"ignition-stub fetch token":                                                 {3, "not an Ignition config"},
		"ignition-stub fetch token --ca ca.crt":                                     {2, "a stub says itself"},
		"ignition-stub fetch $SERVER/config/none --ca ca.crt":                       {5, "404"},
		"ignition-stub fetch $SERVER/config/worker --deadline 1s":                   {5, "which is none of the CAs"},
		"ignition-stub fetch --raw $SERVER/motd --ca ca.crt --digest " + wrong:      {6, "digest mismatch"},
		"ignition-stub fetch --raw $SERVER/motd --ca ca.crt --digest md5-1":         {3, "want sha256"},
		"ignition-stub fetch --raw $SERVER/motd --ca ca.crt":                        {0, "hello"},
		"ignition-stub fetch --deadline 0s x":                                       {2, "leaves no time"},
		"ignition-stub doctor":                                                      {2, "want one argument"},
		"ignition-stub doctor token":                                                {1, "not a config"},
		"ignition-stub doctor token -o json":                                        {1, `"verdict": "FAIL"`},
		"ignition-stub doctor token --ca token":                                     {3, "no certificate"},
		"ignition-stub doctor none":                                                 {4, "none"},
		"ignition-stub inspect token":                                               {3, "not a JSON object"},
		"ignition-stub inspect a b":                                                 {2, "want 1 document"},
		"ignition-stub inspect --diff a":                                            {2, "want 2 documents"},
		`echo '{"ignition":{"version":"3.4.0"}}' | ignition-stub inspect - -o json`: {0, `"kind": "Ignition config"`},
		`echo '{"ignition":{"version":"3.4.0"}}' >a; echo '{"ignition":{"version":"3.5.0"}}' >b; ignition-stub inspect --diff a b`: {1, "different"},
		"ignition-stub completion bash":                                                                                {0, "ignition-stub"},
		"ignition-stub __complete render --platform v":                                                                 {0, "vmware"},
		"ignition-stub render --url $SERVER/config/w -o /dev/stdout | cat":                                             {0, "3.4.0"},
		"mkfifo p; cat p & ignition-stub render --url $SERVER/config/w -o p; wait":                                     {0, "3.4.0"},
		"ignition-stub render --url $SERVER/config/w -o none/x":                                                        {4, "there is no folder none; make it"},
		"ignition-stub render --url $SERVER/config/w --snippet none.ign":                                               {4, "none.ign cannot be read: no such file or directory; name a file"},
		"ignition-stub render --url $SERVER/config/w --ca token --ca ca.crt":                                           {3, "--ca token: CA: no certificate"},
		"ignition-stub render --url http://h/config/w":                                                                 {0, "warning: plain http"},
		"ignition-stub render --url $SERVER/config/w?token=hush 2>&1 >/dev/null":                                       {0, "warning: the URL has a secret"},
		"sleep 9 2>/dev/null | timeout -s TERM 1 ignition-stub render --url $SERVER/config/w --token-file - & wait $!": {124, "interrupted"},
	} {
		code, out, errs := s.run(t, script)
		if code != want.code || !strings.Contains(out+errs, want.says) {
			t.Errorf("%s: exit code %d, want %d and %q in\n%s%s", script, code, want.code, want.says, out, errs)
		}
		if strings.Contains(out+errs, fetchtest.Token) && !strings.Contains(script, "cat") {
			t.Errorf("%s shows the token", script)
		}
		if lines := strings.Count(strings.TrimSpace(errs), "\n"); code > 1 && lines > 12 {
			t.Errorf("%s: %d lines of error", script, lines)
		}
	}
}
