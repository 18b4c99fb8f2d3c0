// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/mcs/publish"
	"github.com/mcsnap/mcsnap/mcs/specver"
)

// Ignition's waits between attempts, from its source (its notes say 100 ms for the first).
const (
	firstWait   = 200 * time.Millisecond
	longestWait = 5 * time.Second
)

// Field case 61: what a rack of refused machines costs. A hundred of them in step ask 500 times in their first 11.2
// seconds and 20 times a second from then on; the server says why once, and every refusal is cheap and counted.
func TestRefusalStorm(t *testing.T) {
	const machines = 100
	f := newFixture(t, func(c *Config) { c.AccessLog = false })
	f.answers.set(&publish.Answer{Pool: "down", Code: publish.CodeNotCaptured, Reason: "never captured; add it"})
	perSecond := map[int]int{}
	for wait, at := firstWait, time.Duration(0); at < 2*time.Minute; at, wait = at+wait, min(2*wait, longestWait) {
		for range machines {
			if r := f.do(http.MethodGet, "/config/down"); r.StatusCode != http.StatusServiceUnavailable {
				t.Fatalf("status %d", r.StatusCode)
			}
		}
		perSecond[int(at/time.Second)] += machines
	}
	steady := 0
	for second, asked := range perSecond {
		if second >= 20 {
			steady += asked
		}
	}
	if perSecond := float64(steady) / 100; perSecond > 20 {
		t.Errorf("%v requests per second, want at most 20", perSecond)
	}
	if n := f.log.lines("level=WARN"); n != 1 {
		t.Errorf("%d lines in the log", n)
	}
	total := 0
	for _, asked := range perSecond {
		total += asked
	}
	if n := f.counter(t, "mcsnap_refusals_total", "down"); int(n) != total {
		t.Errorf("counted %v of %d", n, total)
	}
}

// Field case 55: a name that leads to several servers, the asking machine itself or one that is not ready among them.
// Since a refusal ends its connection, the next attempt reaches another.
func TestSeveralServersUnderOneName(t *testing.T) {
	empty := newFixture(t, nil)
	empty.answers.answers = nil
	full := newFixture(t, nil)
	full.answers.set(answerFor("worker", specver.V3_5))
	a := empty.run(t, "127.0.0.1:0", TLSConfig{})
	b := full.run(t, "127.0.0.1:0", TLSConfig{})
	a.roots.AddCert(b.authority)

	client := a.client()
	var dials atomic.Int64
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, []string{a.addr, b.addr}[(dials.Add(1)-1)%2])
	}
	for attempt := range 2 {
		reply, err := client.Get("https://localhost/config/worker")
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		if want := []int{503, 200}[attempt]; reply.StatusCode != want {
			t.Errorf("attempt %d: status %d, want %d", attempt, reply.StatusCode, want)
		}
	}
}
