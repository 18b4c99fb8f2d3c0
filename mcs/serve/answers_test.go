// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/mcs/publish"
	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

const ignition36 = "Accept: application/vnd.coreos.ignition+json;version=3.6.0, */*;q=0.1"

// Field cases 27, 53, 62 and 79: what may become true is 503, and only what never can is final. Every state in which
// there is no body stands in this table.
func TestStatuses(t *testing.T) {
	reject := func(c *Config) { c.RejectUnknownPools = true }
	final := func(c *Config) { c.Gate = Gate{Final: true, Deny: prefixes("192.0.2.0/24")} }
	deny := func(c *Config) { c.Gate = Gate{Deny: prefixes("192.0.2.0/24")} }
	broken := func(c *Config) {
		c.Snapshots, c.Agents = content{broken: errors.New("disk")}, content{broken: errors.New("disk")}
	}
	full := func(c *Config) { c.MaxInFlight = 1 }
	digest := strings.Repeat("0", 64)
	hash := strings.Repeat("0", 128)

	for _, c := range []struct {
		name         string
		change       func(*Config)
		method, path string
		header       string
		status       int
		code         string
	}{
		{"a pool that is served", nil, "GET", "/config/worker", ignition36, 200, ""},
		{"its gzip", nil, "GET", "/config/worker.gz", ignition36, 200, ""},
		{"a pool that is not known yet", nil, "GET", "/config/infra", ignition36, 503, "unknown-pool"},
		{"a pool that is not known yet, gzip", nil, "GET", "/config/infra.gz", ignition36, 503, "unknown-pool"},
		{"a pool that is not known, when told to reject", reject, "GET", "/config/infra", ignition36, 404, "unknown-pool"},
		{"a pool that another server answers for", func(c *Config) { c.Pools = []string{"master"} }, "GET", "/config/worker", "", 503, "pool-elsewhere"},
		{"a pool without a body", nil, "GET", "/config/empty", ignition36, 503, "not-captured"},
		{"a version the config cannot be expressed in", nil, "GET", "/config/kargs", "Accept: application/vnd.coreos.ignition+json;version=3.2.0", 503, "inexpressible"},
		{"a version that can never be served", nil, "GET", "/config/worker", "Accept: application/vnd.coreos.ignition+json;version=4.0.0", 406, "not-acceptable"},
		{"another version that can never be", nil, "GET", "/config/worker", "Accept: application/vnd.coreos.ignition+json;version=1.0.0", 406, "not-acceptable"},
		{"an empty pool name", nil, "GET", "/config/", "", 400, "bad-pool-name"},
		{"a pool name that climbs", nil, "GET", "/config/../x", "", 400, "bad-pool-name"},
		{"a pool name of 300 letters", nil, "GET", "/config/" + strings.Repeat("a", 300), "", 400, "bad-pool-name"},
		{"a pool name in capitals", nil, "GET", "/config/Worker", "", 400, "bad-pool-name"},
		{"nothing but slashes", nil, "GET", "/config//", "", 400, "bad-pool-name"},
		{"a pool name that breaks lines", nil, "GET", "/config/a\nb", "", 400, "bad-pool-name"},
		{"no pool", nil, "GET", "/config", "", 404, "no-such-path"},
		{"two slashes", nil, "GET", "//config/worker", "", 404, "no-such-path"},
		{"dots that a mux would clean", nil, "GET", "/x/../config/worker", "", 404, "no-such-path"},
		{"a path of ours in capitals", nil, "GET", "/Config/worker", "", 404, "no-such-path"},
		{"the root", nil, "GET", "/", "", 404, "no-such-path"},
		{"a list of snapshots", nil, "GET", "/snapshot/", "", 400, "bad-digest"},
		{"an unknown snapshot", nil, "GET", "/snapshot/sha256-" + digest, "", 503, "snapshot-unknown"},
		{"a digest that is none", nil, "GET", "/snapshot/sha256-" + digest[1:], "", 400, "bad-digest"},
		{"an unreadable snapshot", broken, "GET", "/snapshot/sha256-" + digest, "", 503, "snapshot-unreadable"},
		{"an unknown agent", nil, "GET", "/agent/sha512-" + hash, "", 503, "agent-unknown"},
		{"an unknown agent's gzip", nil, "GET", "/agent/sha512-" + hash + ".gz", "", 503, "agent-unknown"},
		{"a hash that is none", nil, "GET", "/agent/sha512-XX", "", 400, "bad-hash"},
		{"an unreadable agent", broken, "GET", "/agent/sha512-" + hash, "", 503, "agent-unreadable"},
		{"another method", nil, "POST", "/config/worker", "", 405, "method"},
		{"another method, unknown pool", nil, "DELETE", "/config/infra", "", 405, "method"},
		{"an invented method", nil, "BREW", "/readyz", "", 405, "method"},
		{"an address that may not", deny, "GET", "/config/worker", "", 503, "address"},
		{"an address that may not, when final", final, "GET", "/config/worker", "", 403, "address"},
		{"its snapshot", final, "GET", "/snapshot/sha256-" + digest, "", 403, "address"},
		{"its agent is open", final, "GET", "/agent/sha512-" + hash, "", 503, "agent-unknown"},
		{"a full server", full, "GET", "/config/worker", "", 503, "overload"},
		{"a full server's health", full, "GET", "/healthz", "", 200, ""},
		{"alive", nil, "GET", "/healthz", "", 200, ""},
		{"not ready", nil, "GET", "/readyz", "", 503, "not-ready"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, c.change)
			f.answers.set(&publish.Answer{Pool: "empty", Code: publish.CodeNotCaptured, Reason: "never captured; add it"})
			kargs := answerFor("kargs", specver.V3_5)
			delete(kargs.Bodies, specver.V3_2)
			kargs.Inexpressible[specver.V3_2] = errors.New("kernelArguments.shouldNotExist: not in 3.2.0")
			f.answers.set(kargs)
			f.answers.checks = []publish.Check{{Name: "pool-worker", Problem: "not known yet"}}
			if f.cfg.MaxInFlight == 1 {
				f.admission.enter()
			}
			for _, method := range methods(c.method) {
				r := f.do(method, c.path, c.header)
				body := text(t, r)
				if r.StatusCode != c.status {
					t.Errorf("%s: status %d, want %d: %s", method, r.StatusCode, c.status, body)
				}
				if f.log.lines("msg=request", "reason="+c.code) == 0 {
					t.Errorf("%s: no line with reason %q in the log:\n%s", method, c.code, f.log)
				}
				checkShape(t, method, r, body)
			}
		})
	}
}

// methods gives HEAD along with GET: both get the same status and headers.
func methods(m string) []string {
	if m == http.MethodGet {
		return []string{http.MethodGet, http.MethodHead}
	}
	return []string{m}
}

// checkShape checks what holds for every answer.
func checkShape(t *testing.T, method string, r *http.Response, body string) {
	t.Helper()
	h := r.Header
	if h.Get("Content-Encoding") != "" || h.Get("Location") != "" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Length") == "" {
		t.Errorf("headers: %v", h)
	}
	if method != http.MethodHead && body == "" || method == http.MethodHead && body != "" {
		t.Errorf("%s has the body %q", method, body)
	}
	if (r.StatusCode == 503) != (h.Get("Retry-After") != "") {
		t.Errorf("status %d with Retry-After %q", r.StatusCode, h.Get("Retry-After"))
	}
	if (r.StatusCode == 405) != (h.Get("Allow") != "") {
		t.Errorf("status %d with Allow %q", r.StatusCode, h.Get("Allow"))
	}
	if r.StatusCode < 400 {
		return
	}
	if h.Get("Connection") != "close" || h.Get("Etag") != "" || h.Get("Repr-Digest") != "" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("a refusal's headers: %v", h)
	}
	if method != http.MethodHead && (strings.Count(body, "\n") != 1 || !strings.HasSuffix(body, "\n")) {
		t.Errorf("a refusal is not one line: %q", body)
	}
}

// A server that rejects unknown pools rejects none before it knows what there is, and none that was there.
func TestNothingIsRejectedTooEarly(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.RejectUnknownPools = true })
	for absence, want := range map[publish.Absence]int{publish.NotReadYet: 503, publish.Vanished: 503, publish.NeverSeen: 404} {
		f.answers.absence = absence
		if r := f.do("GET", "/config/infra"); r.StatusCode != want {
			t.Errorf("absence %d: status %d, want %d", absence, r.StatusCode, want)
		}
	}
}

// A disk that hangs keeps neither the asking client nor the room for others.
func TestAHangingDisk(t *testing.T) {
	if readWait+readTime >= 8*time.Second {
		t.Errorf("a read may take %s, and Ignition waits ten seconds", readWait+readTime)
	}
	s := newShelf[int](1)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	hang := make(chan struct{})
	defer close(hang)
	if _, err := s.get(ctx, "key", func(context.Context) (int, error) { <-hang; return 1, nil }); !errors.Is(err, errBusy) {
		t.Errorf("%v", err)
	}
}

func TestMissingTellsStoreFaultsFromAbsence(t *testing.T) {
	f := newFixture(t, nil)
	if r := f.missing(store.ErrNotFound, "snapshot", "x"); r.code != "snapshot-unknown" || f.counter(t, "mcsnap_store_read_faults_total") != 0 {
		t.Errorf("absent: %+v", r)
	}
	damaged := &store.DamagedError{Digest: testDigest, Cause: errors.New("flipped")}
	if r := f.missing(damaged, "snapshot", "x"); r.code != "snapshot-unreadable" || f.counter(t, "mcsnap_store_read_faults_total") != 1 {
		t.Errorf("damaged: %+v", r)
	}
}

// Field case 53: one line per pool and reason, however many nodes run into it, and again after the pool was served.
func TestRefusalsAreSaidOnce(t *testing.T) {
	f := newFixture(t, nil)
	refused := func() int { return f.log.lines("level=WARN", "said once", "not-captured") }
	down := &publish.Answer{Pool: "infra", Code: publish.CodeNotCaptured, Reason: "never captured; add it"}
	f.answers.set(down)
	for range 50 {
		f.do("GET", "/config/infra")
		f.do("GET", "/config/unknown")
	}
	if refused() != 1 || f.log.lines("level=WARN", "said once") != 2 {
		t.Errorf("the log:\n%s", f.log)
	}
	f.answers.set(answerFor("infra", specver.V3_4))
	f.do("GET", "/config/infra")
	f.answers.set(down)
	f.do("GET", "/config/infra")
	if refused() != 2 {
		t.Errorf("said %d times, want again after the pool was served", refused())
	}
	if n := f.counter(t, "mcsnap_refusals_total", "infra", "not-captured"); n != 51 {
		t.Errorf("counted %v refusals, want 51", n)
	}
	if n := f.counter(t, "mcsnap_refusals_total", "other", "unknown-pool"); n != 50 {
		t.Errorf("counted %v unknown pools under other, want 50", n)
	}
}
