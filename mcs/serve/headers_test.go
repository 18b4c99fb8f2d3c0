// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot"
)

func sealedSnapshot(t testing.TB) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Seal([]byte(`{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig",
		"metadata":{"name":"rendered-worker-1"},"spec":{"config":{"ignition":{"version":"3.4.0"}}}}`), "worker")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Field case 84: what every kind of body says about itself, and that it is true.
func TestBodiesSayWhatTheyAre(t *testing.T) {
	s := sealedSnapshot(t)
	hash := strings.Repeat("ab", 64)
	f := newFixture(t, func(c *Config) {
		stored := content{snapshots: map[snapshot.Digest]*snapshot.Snapshot{s.Digest(): s}, agents: map[string][]byte{hash: []byte("ELF")}}
		c.Snapshots, c.Agents = stored, stored
	})
	for _, c := range []struct{ path, contentType, cache, rendered string }{
		{"/config/worker", "application/json", "no-store", "rendered-worker"},
		{"/config/worker.gz", "application/gzip", "no-store", "rendered-worker"},
		{"/snapshot/" + s.Digest().PathForm(), "application/json", "private, max-age=31536000, immutable", "rendered-worker-1"},
		{"/agent/sha512-" + hash, "application/octet-stream", "public, max-age=31536000, immutable", ""},
		{"/agent/sha512-" + hash + ".gz", "application/gzip", "public, max-age=31536000, immutable", ""},
	} {
		got := f.do("GET", c.path)
		body := text(t, got)
		h := got.Header
		sum := sha256.Sum256([]byte(body))
		digest := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
		if got.StatusCode != 200 || h.Get("Content-Type") != c.contentType || h.Get("Cache-Control") != c.cache ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Mcsnap-Rendered-Config") != c.rendered {
			t.Errorf("%s: %d %v", c.path, got.StatusCode, h)
		}
		if h.Get("Content-Length") != fmt.Sprint(len(body)) || h.Get("Etag") != fmt.Sprintf(`"%x"`, sum) || h.Get("Repr-Digest") != digest {
			t.Errorf("%s: %d bytes, %s; the headers say %v", c.path, len(body), digest, h)
		}
		if h.Get("Mcsnap-Fallback") != "" || h.Get("Connection") != "" {
			t.Errorf("%s: %v", c.path, h)
		}
		head := f.do("HEAD", c.path)
		if rest := text(t, head); rest != "" || fmt.Sprint(head.Header) != fmt.Sprint(h) {
			t.Errorf("%s: HEAD has a body of %d bytes, headers\n%v and GET\n%v", c.path, len(rest), head.Header, h)
		}
	}
}

// The standard library's rules for parts and validators, on every kind of body.
func TestConditionalRequests(t *testing.T) {
	f := newFixture(t, nil)
	whole := text(t, f.do("GET", "/config/worker"))
	etag := f.do("GET", "/config/worker").Header.Get("Etag")
	for _, c := range []struct {
		header string
		status int
		body   string
	}{
		{"Range: bytes=2-9", 206, whole[2:10]},
		{"Range: bytes=-4", 206, whole[len(whole)-4:]},
		{"Range: bytes=99999-", 416, "*"},
		{"Range: lines=1-2", 416, "*"},
		{"If-None-Match: " + etag, 304, ""},
		{"If-None-Match: *", 304, ""},
		{`If-None-Match: "other"`, 200, whole},
		{"If-Match: " + etag, 200, whole},
		{`If-Match: "other"`, 412, ""},
		{"If-Modified-Since: Tue, 01 Dec 2026 00:00:00 GMT", 200, whole},
	} {
		got := f.do("GET", "/config/worker", c.header)
		body := text(t, got)
		if got.StatusCode != c.status || body != c.body && c.body != "*" {
			t.Errorf("%s: %d %q, want %d %q", c.header, got.StatusCode, body, c.status, c.body)
		}
		if got.StatusCode >= 400 && (got.Header.Get("Repr-Digest") != "" || got.Header.Get("Etag") != "") {
			t.Errorf("%s: an error describes a body: %v", c.header, got.Header)
		}
		if f.log.lines("msg=request", fmt.Sprintf("status=%d", c.status)) == 0 {
			t.Errorf("%s: the log does not have status %d:\n%s", c.header, c.status, f.log)
		}
	}
	if n := f.counter(t, "mcsnap_requests_total", "worker", "304"); n != 2 {
		t.Errorf("counted %v answers with 304", n)
	}
}

// Field case 65: identity unless gzip is asked for as a transport encoding.
func TestTransportEncoding(t *testing.T) {
	f := newFixture(t, nil)
	plain := text(t, f.do("GET", "/config/worker"))
	for _, c := range []struct {
		accept string
		gzip   bool
	}{
		{"", false},
		{"identity", false},
		{"*", false},
		{"br", false},
		{"gzip;q=0", false},
		{"gzip;q=0.0", false},
		{"x-gzip", false},
		{"gzip", true},
		{"GZIP", true},
		{"deflate, gzip, br", true},
		{"gzip; q=0.5", true},
		{"identity;q=0.5, gzip;q=1.0", true},
		{"gzip;q=nonsense", false},
	} {
		got := f.do("GET", "/config/worker", "Accept-Encoding: "+c.accept)
		if got.Header.Get("Vary") != "Accept, Accept-Encoding" {
			t.Errorf("%q: Vary %q", c.accept, got.Header.Get("Vary"))
		}
		if encoded := got.Header.Get("Content-Encoding") == "gzip"; encoded != c.gzip {
			t.Errorf("Accept-Encoding: %q is answered encoded: %v", c.accept, encoded)
			continue
		}
		body := got.Body
		if c.gzip {
			inflated, err := gzip.NewReader(got.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = inflated
		}
		if b, err := io.ReadAll(body); err != nil || string(b) != plain {
			t.Errorf("%q: another body: %v", c.accept, err)
		}
	}
	// The .gz document is a file of its own and never encoded once more.
	if got := f.do("GET", "/config/worker.gz", "Accept-Encoding: gzip"); got.Header.Get("Content-Encoding") != "" {
		t.Errorf("the gzip document is encoded: %v", got.Header)
	}
}

// Field case 29 on the server's side: which body an Accept header gets; specver has the whole table.
func TestVersionOfABody(t *testing.T) {
	f := newFixture(t, nil) // own version 3.5.0
	for _, c := range []struct {
		accept []string
		want   string
	}{
		{nil, "3.5.0"},
		{[]string{"Accept: */*"}, "3.5.0"},
		{[]string{ignition36}, "3.5.0"},
		{[]string{"Accept: application/vnd.coreos.ignition+json;version=3.1.0, */*;q=0.1"}, "3.1.0"},
		{[]string{"Accept: text/html", "Accept: application/vnd.coreos.ignition+json;version=3.2.0"}, "3.2.0"},
		{[]string{"Accept: application/vnd.coreos.ignition+json; version=2.4.0, application/vnd.coreos.ignition+json; version=1; q=0.5, */*; q=0.1"}, "2.2.0"},
	} {
		for range 2 { // parsed, and remembered
			got := f.do("GET", "/config/worker", c.accept...)
			if body := text(t, got); got.StatusCode != 200 || !strings.Contains(body, `"`+c.want+`"`) {
				t.Errorf("%q: %d %s, want version %s", c.accept, got.StatusCode, body, c.want)
			}
		}
	}
	f.cfg.DefaultSpec = specver.V2_2
	f.answers.set(answerFor("worker", specver.V3_5))
	if body := text(t, f.do("GET", "/config/worker")); !strings.Contains(body, "2.2.0") {
		t.Errorf("--default-spec 2.2.0 and no Accept: %s", body)
	}
	// What clients invent is not remembered without bound.
	for i := range 10 * mostAsked {
		f.do("GET", "/config/worker", fmt.Sprintf("Accept: text/%d", i))
	}
	if n := len(*(*f.table.Load())["worker"].asked.Load()); n > mostAsked {
		t.Errorf("%d Accept headers are remembered", n)
	}
}

// A pool whose own name ends in .gz is that pool, and both forms of it can be had.
func TestAPoolNamedLikeAFile(t *testing.T) {
	f := newFixture(t, nil)
	f.answers.set(answerFor("worker.gz", specver.V3_4))
	for path, want := range map[string]string{"/config/worker.gz": "rendered-worker.gz", "/config/worker.gz.gz": "rendered-worker.gz", "/config/worker": "rendered-worker"} {
		if got := f.do("GET", path).Header.Get("Mcsnap-Rendered-Config"); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

func TestFallbackIsFlagged(t *testing.T) {
	f := newFixture(t, nil)
	a := answerFor("worker", specver.V3_5)
	a.Fallback = true
	f.answers.set(a)
	if got := f.do("GET", "/config/worker"); got.Header.Get("Mcsnap-Fallback") != "last-selected" {
		t.Errorf("headers: %v", got.Header)
	}
	if n := f.counter(t, "mcsnap_fallback_answers_total", "worker"); n != 1 {
		t.Errorf("counted %v", n)
	}
}

func TestReadiness(t *testing.T) {
	f := newFixture(t, nil)
	if got := f.do("GET", "/readyz"); got.StatusCode != 200 || text(t, got) != "ok\n" {
		t.Errorf("ready: %d", got.StatusCode)
	}
	f.answers.checks = append(f.answers.checks, checkOf("pool-worker", ""), checkOf("pool-infra", "never captured"))
	got := f.do("GET", "/readyz?verbose")
	if body := text(t, got); got.StatusCode != 503 || body != "[+] pool-worker ok\n[-] pool-infra: never captured\n" {
		t.Errorf("%d %q", got.StatusCode, body)
	}
	f.answers.checks = f.answers.checks[:1]
	if body := text(t, f.do("GET", "/readyz?verbose")); body != "[+] pool-worker ok\nready\n" {
		t.Errorf("%q", body)
	}
	f.answers.checks[0].Note = "older"
	if body := text(t, f.do("GET", "/readyz?verbose")); body != "[!] pool-worker: older (nodes are served all the same)\nready\n" {
		t.Errorf("%q", body)
	}
	if got := f.do("HEAD", "/healthz"); got.StatusCode != 200 || got.Header.Get("Content-Length") != "3" {
		t.Errorf("HEAD /healthz: %d %v", got.StatusCode, got.Header)
	}
}

// discard is a ResponseWriter that costs nothing, for counting what the handler allocates.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }

// A request is a look-up and one write: the handler itself allocates nothing.
func TestARequestAllocatesNothing(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.AccessLog = false })
	request, err := http.NewRequest("GET", "https://mcs/config/worker", bytes.NewReader(nil))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", strings.TrimPrefix(ignition36, "Accept: "))
	request.Header.Set("Accept-Encoding", "identity")
	w := &discard{header: http.Header{}}
	f.ServeHTTP(w, request)
	if n := testing.AllocsPerRun(1000, func() { f.ServeHTTP(w, request) }); n >= 1 {
		t.Errorf("%v allocations per request", n)
	}
}
