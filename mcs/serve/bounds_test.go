// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

// Work is bounded: requests beyond the bound get a 503 at once, connections beyond it are closed at once.
func TestBounds(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.MaxInFlight, c.MaxConnections = 2, 4 })
	large(f, 8<<20)
	r := f.run(t, "127.0.0.1:0", TLSConfig{})
	for range 2 { // two readers that rest fill the server
		if _, err := io.ReadFull(r.dialSmall(t, "/config/worker"), make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	reply, err := r.client().Get(r.url + "/config/worker")
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	if reply.StatusCode != 503 || time.Since(begun) > 5*time.Second {
		t.Errorf("a full server answered %d after %s", reply.StatusCode, time.Since(begun))
	}
	for range 4 {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	for f.counter(t, "mcsnap_connections_refused_total") == 0 {
		time.Sleep(time.Millisecond)
	}
}

// Slow headers and idle connections are let go, and nothing is left of them.
func TestTimeouts(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.HeaderTimeout, c.IdleTimeout = 100*time.Millisecond, 100*time.Millisecond })
	before := runtime.NumGoroutine()
	r := f.run(t, "127.0.0.1:0", TLSConfig{})
	for _, begin := range []string{"", "GET /config/worker HTTP/1.1\r\nHost: x\r\n", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"} {
		conn, err := tls.Dial("tcp", r.addr, &tls.Config{RootCAs: r.roots, ServerName: "localhost"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, begin); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.ReadAll(conn); err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a connection that said %q was kept", begin)
		}
		_ = conn.Close()
	}
	silent, err := net.Dial("tcp", r.addr) // not even a handshake
	if err != nil {
		t.Fatal(err)
	}
	_ = silent.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadAll(silent); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a connection without a handshake was kept")
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before+1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}
