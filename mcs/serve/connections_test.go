// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Handshakes that fail are told as this server tells things, by kind, and what a client sends cannot forge a line.
func TestFailedHandshakes(t *testing.T) {
	r := newFixture(t, nil).run(t, "127.0.0.1:0", TLSConfig{})
	for kind, provoke := range map[string]func(net.Conn){
		"bad-certificate": func(c net.Conn) {
			_ = tls.Client(c, &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost"}).Handshake()
		},
		"plain-http": func(c net.Conn) { _, _ = io.WriteString(c, "GET /config/worker HTTP/1.1\r\n\r\n") },
		"not-tls":    func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-\nlevel=ERROR msg=forged\n") },
		"version": func(c net.Conn) {
			_ = tls.Client(c, &tls.Config{RootCAs: r.roots, ServerName: "localhost", MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}).Handshake()
		},
	} {
		for range 3 {
			conn, err := net.Dial("tcp", r.addr)
			if err != nil {
				t.Fatal(err)
			}
			provoke(conn)
			_, _ = io.Copy(io.Discard, conn) // until the server has closed it
			_ = conn.Close()
		}
		counted := func() float64 { return r.counter(t, "mcsnap_tls_handshake_failures_total", kind) }
		for deadline := time.Now().Add(time.Minute); counted() < 3; { // the server may close before it counts
			if time.Now().After(deadline) {
				t.Fatalf("%v of kind %s are counted; the log is\n%s", counted(), kind, r.log)
			}
			time.Sleep(time.Millisecond)
		}
		if n := r.log.lines("a TLS handshake failed", "address=127.0.0.1:", "code="+kind, "remedy="); n != 1 {
			t.Errorf("%s is said %d times, want once:\n%s", kind, n, r.log)
		}
	}
	if n := r.log.lines("http: TLS"); n != 0 {
		t.Errorf("net/http speaks for itself:\n%s", r.log)
	}
	if n := r.log.lines("level=ERROR"); n != 0 {
		t.Errorf("a client has forged a line:\n%s", r.log)
	}
}

// However many fail, a kind is said once a minute, with how many were passed over.
func TestHandshakesAreSaidNowAndThen(t *testing.T) {
	log := &logged{}
	now := time.Unix(0, 0)
	lines := &connectionLines{log: slog.New(slog.NewTextHandler(log, nil)), metrics: NewMetrics(prometheus.NewRegistry()), now: func() time.Time { return now }}
	fail := func() {
		_, _ = fmt.Fprintf(lines, "http: TLS handshake error from [fe80::1%%ens3]:1: remote error: tls: unknown certificate authority\n")
	}
	for range 100 {
		fail()
	}
	now = now.Add(saidEvery)
	fail()
	if n := log.lines("code=unknown-ca", "[fe80::1%ens3]:1"); n != 2 || log.lines("not_said_since=99") != 1 {
		t.Errorf("it is said %d times:\n%s", n, log)
	}
	_, _ = lines.Write([]byte("http: TLS handshake error from 1.2.3.4:5: odd\nlevel=ERROR" + strings.Repeat("x", 500)))
	if log.lines("code=other") != 1 || log.lines(strings.Repeat("x", 200)) != 0 {
		t.Errorf("what is odd is not cut and made printable:\n%s", log)
	}
}
