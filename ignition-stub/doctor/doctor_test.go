// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/ignition-stub/doctor"
	"github.com/mcsnap/mcsnap/ignition-stub/fetch/fetchtest"
	"github.com/mcsnap/mcsnap/ignition-stub/stub"
	"github.com/mcsnap/mcsnap/snapshot"
)

// world is a server that works, a stub that works with it, and how to spoil either.
type world struct {
	ca      *fetchtest.CA
	config  []byte
	options stub.Options // of the stub
	doctor  doctor.Options
	answer  func(w http.ResponseWriter, r *http.Request) bool // true: answered
	issue   []func(*x509.Certificate)
	chain   *fetchtest.CA // shown with the server's certificate, and its issuer
	stub    func([]byte) []byte
}

func newWorld(t *testing.T) *world {
	t.Helper()
	rendered, err := os.ReadFile("../../snapshot/testdata/rendered-worker.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Seal(rendered, "worker")
	if err != nil {
		t.Fatal(err)
	}
	config, err := snapshot.Embed([]byte(`{"ignition":{"version":"3.4.0"}}`), s)
	if err != nil {
		t.Fatal(err)
	}
	ca := fetchtest.NewCA(t, "root-ca")
	return &world{ca: ca, config: config, options: stub.Options{Pool: "worker", CAs: [][]byte{ca.PEM}},
		doctor: doctor.Options{Timeout: 2 * time.Second}, stub: func(s []byte) []byte { return s }}
}

// run starts the server, makes the stub, and asks the doctor.
func (w *world) run(t *testing.T) *doctor.Report {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if w.answer != nil && w.answer(out, r) {
			return
		}
		out.Write(w.config)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	issuer := w.ca
	if w.chain != nil {
		issuer = w.chain
	}
	certificate := issuer.Issue(t, w.issue...)
	if w.chain != nil {
		certificate.Certificate = append(certificate.Certificate, w.chain.Certificate.Raw)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	if w.options.URL == "" {
		w.options.URL = server.URL
	}
	w.options.URL = strings.ReplaceAll(w.options.URL, "PORT", server.URL[strings.LastIndex(server.URL, ":")+1:])
	made, err := stub.Render(w.options)
	if err != nil {
		t.Fatal(err)
	}
	return doctor.Run(t.Context(), w.stub(made.JSON), w.doctor)
}

func TestAllIsWell(t *testing.T) {
	w := newWorld(t)
	w.options.Token, w.options.Now = jwt(time.Now().Add(24*time.Hour)), time.Now()
	report := w.run(t)
	if report.Failed() || len(report.Checks) != len(doctor.Names) {
		t.Fatalf("\n%s", report.Screen())
	}
	for i, c := range report.Checks {
		if c.Name != doctor.Names[i] || c.Verdict != doctor.OK && c.Name != "name" {
			t.Errorf("%+v, want %s ok", c, doctor.Names[i])
		}
	}
	if screen := report.Screen(); strings.Contains(screen, w.options.Token) || !strings.Contains(screen, "rendered-worker-0123456789abcdef") ||
		!strings.Contains(screen, "Machines with this stub come up.") {
		t.Errorf("\n%s", screen)
	}
}

// Every check has something that makes it fail, or warn where failing would be too much.
func TestEveryCheckFails(t *testing.T) {
	other := fmt.Sprintf("sha512-%x", sha512.Sum512([]byte("other")))
	cases := map[string]struct {
		check   string
		verdict doctor.Verdict
		says    string
		spoil   func(*world)
	}{
		"not Ignition":    {"stub", doctor.Fail, "not a config", func(w *world) { w.stub = func([]byte) []byte { return []byte("#!/bin/sh") } }},
		"no server in it": {"stub", doctor.Fail, "names no server", func(w *world) { w.stub = func([]byte) []byte { return []byte(`{"ignition":{"version":"3.4.0"}}`) } }},
		"replaces":        {"stub", doctor.Warn, "it replaces", func(w *world) { w.stub = replacing }},
		"too big": {"size", doctor.Fail, "and virtualbox takes 1024", func(w *world) {
			w.doctor.Platform = "virtualbox"
			w.options.CAs = append(w.options.CAs, fetchtest.NewCA(t, "another").PEM)
		}},
		"token expired":  {"token", doctor.Fail, "expired", func(w *world) { w.options.Token = jwt(time.Now().Add(-time.Hour)) }},
		"token runs out": {"token", doctor.Warn, "expires in", func(w *world) { w.options.Token = jwt(time.Now().Add(time.Hour)) }},
		"CA expired": {"CA", doctor.Fail, "expired", func(w *world) {
			w.ca = fetchtest.NewCA(t, "old", fetchtest.Expired)
			w.options.CAs = [][]byte{w.ca.PEM}
		}},
		"no such name":    {"name", doctor.Fail, "has no address", func(w *world) { w.options.URL, w.doctor.Resolver = "https://api-int.example.com:22623", names{} }},
		"nothing listens": {"address", doctor.Fail, "refuses", func(w *world) { w.options.URL = "https://127.0.0.1:1" }},
		"one is dead": {"address", doctor.Warn, "127.0.0.2 refuses", func(w *world) {
			w.options.URL, w.doctor.Resolver = "https://localhost:PORT", names{"localhost": {"127.0.0.1", "127.0.0.2"}}
		}},
		"expired":       {"certificate", doctor.Fail, "renew it", func(w *world) { w.issue = append(w.issue, fetchtest.Expired) }},
		"not yet valid": {"certificate", doctor.Fail, "valid only from", func(w *world) { w.issue = append(w.issue, fetchtest.Future) }},
		"another name":  {"certificate", doctor.Fail, "not for 127.0.0.1", func(w *world) { w.issue = append(w.issue, fetchtest.Other) }},
		"almost expired": {"certificate", doctor.Warn, "about to expire", func(w *world) {
			w.issue = append(w.issue, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(time.Hour) })
		}},
		"another CA":        {"certificate", doctor.Fail, "has another CA", func(w *world) { w.options.CAs = [][]byte{fetchtest.NewCA(t, "stranger").PEM} }},
		"503":               {"answer", doctor.Fail, "not captured yet", func(w *world) { w.answer = status(503, "pool worker is not captured yet\n") }},
		"404":               {"answer", doctor.Fail, "emergency shell", func(w *world) { w.answer = status(404, "") }},
		"401":               {"answer", doctor.Fail, "wants a token", func(w *world) { w.answer = status(401, "") }},
		"403 with a token":  {"answer", doctor.Fail, "does not accept the token", func(w *world) { w.answer = status(403, ""); w.options.Token = "t" }},
		"a redirect":        {"answer", doctor.Fail, "without the stub's headers", func(w *world) { w.answer = status(302, "") }},
		"nothing":           {"answer", doctor.Fail, "a bare machine", func(w *world) { w.config = nil }},
		"cut short":         {"answer", doctor.Fail, "cut short", func(w *world) { w.answer = cut }},
		"slow":              {"latency", doctor.Fail, "Ignition waits 1s", func(w *world) { w.options.HTTPResponseHeaders = 1; w.answer = slow(1100 * time.Millisecond) }},
		"almost too slow":   {"latency", doctor.Warn, "little is left", func(w *world) { w.options.HTTPResponseHeaders = 2; w.answer = slow(1100 * time.Millisecond) }},
		"clocks differ":     {"clock", doctor.Fail, "differ by 2h", func(w *world) { w.doctor.Now = func() time.Time { return time.Now().Add(2 * time.Hour) } }},
		"not for the stub":  {"versions", doctor.Fail, "not for 3.4 (406)", func(w *world) { w.answer = notFor("3.4.0") }},
		"a page":            {"config", doctor.Fail, "not one that Ignition reads", func(w *world) { w.config = []byte("<html>") }},
		"no gzip":           {"config", doctor.Fail, "asks for gzip", func(w *world) { w.options.Gzip = true }},
		"another hash":      {"config", doctor.Fail, "digest mismatch", func(w *world) { w.stub = adding(`"verification":{"hash":"` + other + `"}`) }},
		"too new":           {"config", doctor.Warn, "newer than the stub's 3.1.0", func(w *world) { w.options.Version = stub.V3_1 }},
		"snapshot damaged":  {"snapshot", doctor.Fail, "digest mismatch", func(w *world) { w.config = damaged(t) }},
		"no snapshot":       {"snapshot", doctor.Warn, "not mcsnap's", func(w *world) { w.config = []byte(`{"ignition":{"version":"3.4.0"}}`) }},
		"a cache between":   {"snapshot", doctor.Fail, "look for a cache", func(w *world) { w.answer = header("Mcsnap-Snapshot-Digest", "sha256:other") }},
		"the last one":      {"snapshot", doctor.Warn, "never captured", func(w *world) { w.answer = header("Mcsnap-Fallback", "last-selected") }},
		"a file is missing": {"files", doctor.Fail, "refused", func(w *world) { w.config = naming("/no") }},
	}
	failing := map[string]bool{}
	for name, c := range cases {
		if c.verdict == doctor.Fail {
			failing[c.check] = true
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.spoil(w)
			report := w.run(t)
			for _, check := range report.Checks {
				if check.Name != c.check {
					continue
				}
				if text := check.Text + " " + check.Remedy; check.Verdict != c.verdict || !strings.Contains(text, c.says) {
					t.Errorf("%s %s: %s; want %s with %q", check.Name, check.Verdict, text, c.verdict, c.says)
				}
				if check.Remedy == "" {
					t.Errorf("%s has no remedy", check.Name)
				}
			}
			if report.Failed() != (c.verdict == doctor.Fail) {
				t.Errorf("\n%s", report.Screen())
			}
		})
	}
	for _, name := range doctor.Names {
		if !failing[name] {
			t.Errorf("check %s has no case in which it fails", name)
		}
	}
}

// Field case 46, and the whole point: the CA was rotated, user-data still has the old one, and the report ends with the
// edit that repairs it.
func TestBrokenRotationIsRepaired(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, fresh *fetchtest.CA)
		says   string
	}{
		"the operator has the new CA": {func(w *world, fresh *fetchtest.CA) { w.doctor.CA = fresh.PEM }, "given with --ca has issued"},
		"the server shows it":         {func(w *world, fresh *fetchtest.CA) { w.chain = fresh }, "compare the fingerprint"},
		"nobody has it":               {func(*world, *fetchtest.CA) {}, "run this again with --ca"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			old := w.ca
			fresh := fetchtest.NewCA(t, "root-ca")
			w.ca, w.options.CAs = fresh, [][]byte{old.PEM}
			c.change(w, fresh)
			var userData []byte
			w.stub = func(s []byte) []byte { userData = s; return s }
			report := w.run(t)
			screen := report.Screen()
			for _, want := range []string{"the user-data still has the old CA", c.says} {
				if !strings.Contains(screen, want) {
					t.Errorf("no %q in\n%s", want, screen)
				}
			}
			t.Logf("\n%s", screen)
			repaired, err := report.Repaired(userData)
			if name == "nobody has it" {
				if err == nil {
					t.Error("repaired from nothing")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if again := doctor.Run(t.Context(), repaired, w.doctor); again.Failed() {
				t.Errorf("the repaired stub:\n%s", again.Screen())
			}
		})
	}
}

// names is a resolver.
type names map[string][]string

func (n names) LookupIPAddr(_ context.Context, host string) (found []net.IPAddr, err error) {
	for _, address := range n[host] {
		found = append(found, net.IPAddr{IP: net.ParseIP(address)})
	}
	if found == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return found, nil
}

func jwt(expires time.Time) string {
	return "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, expires.Unix())) + ".sig"
}

func status(code int, text string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(code)
		io.WriteString(w, text)
		return true
	}
}

func slow(d time.Duration) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			time.Sleep(d)
		}
		return false
	}
}

func header(name, value string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool { w.Header().Set(name, value); return false }
}

func notFor(version string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		refused := r.Method == http.MethodHead && strings.Contains(r.Header.Get("Accept"), version)
		if refused {
			w.WriteHeader(http.StatusNotAcceptable)
		}
		return refused
	}
}

func cut(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Set("Content-Length", "100")
	io.WriteString(w, "{")
	http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func naming(path string) []byte {
	return []byte(`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/a","contents":{"source":"https://127.0.0.1:1` + path + `"}}]}}`)
}

func replacing(stub []byte) []byte {
	return []byte(strings.Replace(strings.Replace(string(stub), `"merge":[`, `"replace":`, 1), `}]},"security"`, `}},"security"`, 1))
}

func adding(member string) func([]byte) []byte {
	return func(stub []byte) []byte {
		return []byte(strings.Replace(string(stub), `/config/worker"`, `/config/worker",`+member, 1))
	}
}

func damaged(t *testing.T) []byte {
	sealed, err := os.ReadFile("../../snapshot/testdata/rendered-worker.snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(sealed), "quiet", "quiEt", 1)
	config, err := json.Marshal(map[string]any{"ignition": map[string]any{"version": "3.4.0"}, "storage": map[string]any{
		"files": []any{map[string]any{"path": snapshot.Path, "contents": map[string]any{"source": "data:;base64," + base64.StdEncoding.EncodeToString([]byte(text))}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return config
}
