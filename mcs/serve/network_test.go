// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/devtls"
	"github.com/mcsnap/mcsnap/mcs/specver"
)

// running is a server on a port of this machine.
type running struct {
	*fixture
	addr  string
	url   string
	roots *x509.CertPool
	tls   *tls.Config
	// authority is the certificate in roots.
	authority *x509.Certificate
	stop      func() error // ends it and returns what Run returned
}

// run starts the fixture's server with TLS on the address.
func (f *fixture) run(t testing.TB, address string, config TLSConfig) *running {
	t.Helper()
	files, err := devtls.Ensure(t.TempDir(), []string{"localhost", "127.0.0.1", "::1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	secure, err := config.Build(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil })
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if f.listening != nil {
		l = f.listening(l)
	}
	ca, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{fixture: f, addr: l.Addr().String(), url: "https://" + l.Addr().String(), roots: x509.NewCertPool(), tls: secure}
	block, _ := pem.Decode(ca)
	if r.authority, err = x509.ParseCertificate(block.Bytes); err != nil {
		t.Fatal(err)
	}
	r.roots.AddCert(r.authority)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx, Listener{l, secure}) }()
	r.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = r.stop() })
	return r
}

func (r *running) client() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.roots}, DisableCompression: true}}
}

// Field case 52: N refusals take N connections, so that a load balancer can try another server each time; N bodies
// take one.
func TestRefusalsEndTheConnection(t *testing.T) {
	const asked = 20
	for _, c := range []struct {
		path        string
		status      int
		connections int
	}{
		{"/config/unknown", 503, asked},
		{"/config/worker", 200, 1},
	} {
		r := newFixture(t, nil).run(t, "127.0.0.1:0", TLSConfig{})
		client, ports := r.client(), map[string]bool{}
		dial := &net.Dialer{}
		client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial.DialContext(ctx, network, addr)
			if err == nil {
				ports[conn.LocalAddr().String()] = true
			}
			return conn, err
		}
		for range asked {
			reply, err := client.Get(r.url + c.path)
			if err != nil {
				t.Fatal(err)
			}
			if reply.StatusCode == 200 {
				_, _ = io.Copy(io.Discard, reply.Body)
			}
			_ = reply.Body.Close() // a refusal's body is not read, as Ignition does not
			if reply.StatusCode != c.status {
				t.Errorf("status %d, want %d", reply.StatusCode, c.status)
			}
		}
		if len(ports) != c.connections {
			t.Errorf("%s: %d answers over %d connections, want %d", c.path, asked, len(ports), c.connections)
		}
	}
}

// Field case 44: what the server speaks, and what it never does.
func TestTLSVersions(t *testing.T) {
	const refused = 0
	for _, c := range []struct {
		config TLSConfig
		client uint16 // the client's newest
		want   uint16
	}{
		{TLSConfig{}, tls.VersionTLS10, refused},
		{TLSConfig{}, tls.VersionTLS11, refused},
		{TLSConfig{}, tls.VersionTLS12, tls.VersionTLS12},
		{TLSConfig{}, tls.VersionTLS13, tls.VersionTLS13},
		{TLSConfig{MinVersion: "1.3"}, tls.VersionTLS12, refused},
		{TLSConfig{MinVersion: "1.3"}, tls.VersionTLS13, tls.VersionTLS13},
		{TLSConfig{CipherSuites: []string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}}, tls.VersionTLS12, tls.VersionTLS12},
	} {
		r := newFixture(t, nil).run(t, "127.0.0.1:0", c.config)
		conn, err := tls.Dial("tcp", r.addr, &tls.Config{
			RootCAs: r.roots, ServerName: "localhost", MinVersion: tls.VersionTLS10, MaxVersion: c.client, NextProtos: []string{"h2", "http/1.1"},
		})
		got, suite, protocol := uint16(refused), uint16(0), ""
		if err == nil {
			state := conn.ConnectionState()
			got, suite, protocol = state.Version, state.CipherSuite, state.NegotiatedProtocol
			_ = conn.Close()
		}
		if got != c.want {
			t.Errorf("%+v, client up to %s: got %s (%v)", c.config, tls.VersionName(c.client), tls.VersionName(got), err)
		}
		if err == nil && protocol != "http/1.1" {
			t.Errorf("protocol %q, want HTTP/1.1 and no other", protocol)
		}
		if len(c.config.CipherSuites) > 0 && tls.CipherSuiteName(suite) != c.config.CipherSuites[0] {
			t.Errorf("suite %s, want %s", tls.CipherSuiteName(suite), c.config.CipherSuites[0])
		}
	}
	for _, bad := range []TLSConfig{
		{MinVersion: "1.1"}, {MinVersion: "3"}, {CipherSuites: []string{"TLS_RSA_WITH_RC4_128_SHA"}},
		{MinVersion: "1.3", CipherSuites: []string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}},
	} {
		if _, err := bad.Build(nil); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

// large makes the worker's body that many bytes long.
func large(f *fixture, size int) string {
	text := `"` + strings.Repeat("x", size-2) + `"`
	a := answerFor("worker", specver.V3_5)
	for v := range a.Bodies {
		a.Bodies[v] = &compose.Body{Version: v, JSON: []byte(text), Gzip: []byte("gz")}
	}
	f.answers.set(a)
	return text
}

// slowly reads like a serial line: so many bytes at a time, with a rest in between.
func slowly(t *testing.T, from io.Reader, bytes int, rest time.Duration) string {
	t.Helper()
	var got strings.Builder
	for {
		n, err := io.CopyN(&got, from, int64(bytes))
		if errors.Is(err, io.EOF) {
			return got.String()
		}
		if err != nil {
			t.Errorf("after %d bytes: %v", got.Len()+int(n), err)
			return got.String()
		}
		time.Sleep(rest)
	}
}

// dialSmall connects with a small receive buffer, so that the network holds little for a slow reader.
func (r *running) dialSmall(t *testing.T, path string) *tls.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).SetReadBuffer(32 << 10)
	secure := tls.Client(conn, &tls.Config{RootCAs: r.roots, ServerName: "localhost"})
	t.Cleanup(func() { _ = secure.Close() })
	if _, err := io.WriteString(secure, "GET "+path+" HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return secure
}

// Field case 63, in a tenth of the time: a slow reader gets the whole body, though every read takes longer than the
// whole answer would be allowed with a common write timeout; a reader that has stopped is let go.
func TestSlowReaders(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.StallTimeout = time.Second })
	want := large(f, 8<<20)
	r := f.run(t, "127.0.0.1:0", TLSConfig{})

	got := slowly(t, r.dialSmall(t, "/config/worker"), 128<<10, 40*time.Millisecond)
	if _, body, _ := strings.Cut(got, "\r\n\r\n"); body != want {
		t.Errorf("a slow reader got %d bytes of %d", len(body), len(want))
	}

	stopped := r.dialSmall(t, "/config/worker")
	time.Sleep(2 * time.Second)
	if rest, err := io.ReadAll(stopped); err == nil && len(rest) >= len(want) {
		t.Error("a reader that took nothing for twice the stall timeout was kept")
	}
}

// "SIGTERM: stop accepting, finish every body (a slow reader too, up to --drain-timeout)."
func TestDrain(t *testing.T) {
	f := newFixture(t, nil)
	want := large(f, 8<<20)
	r := f.run(t, "127.0.0.1:0", TLSConfig{})
	slow := r.dialSmall(t, "/config/worker")
	if _, err := io.ReadFull(slow, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.stop() }()
	for !r.draining.Load() {
		time.Sleep(time.Millisecond)
	}
	if checks := r.checks(); checks[0].Problem == "" {
		t.Error("a server that ends says it is ready")
	}
	for { // the listener closes right after
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			break
		}
		_ = conn.Close()
		time.Sleep(time.Millisecond)
	}
	got := slowly(t, slow, 512<<10, 20*time.Millisecond)
	if _, body, _ := strings.Cut(got, "\r\n\r\n"); body != want {
		t.Errorf("a reader got %d bytes of %d from a server that ends", len(body), len(want))
	}
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
}

func TestDrainTimeout(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.DrainTimeout = 50 * time.Millisecond })
	large(f, 8<<20)
	r := f.run(t, "127.0.0.1:0", TLSConfig{})
	if _, err := io.ReadFull(r.dialSmall(t, "/config/worker"), make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := r.stop(); !errors.Is(err, ErrCut) {
		t.Errorf("Run = %v, want ErrCut", err)
	}
}

// Field case 56: any port, one address or all, IPv4 and IPv6 by the name localhost.
func TestAddresses(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		r := newFixture(t, nil).run(t, address, TLSConfig{})
		_, port, _ := net.SplitHostPort(r.addr)
		for _, host := range []string{"127.0.0.1", "::1", "localhost"} {
			bound, _, _ := net.SplitHostPort(address)
			if bound != "" && host != bound {
				continue
			}
			reply, err := r.client().Get("https://" + net.JoinHostPort(host, port) + "/config/worker")
			if err != nil {
				t.Errorf("listening on %s, asked at %s: %v", address, host, err)
				continue
			}
			_ = reply.Body.Close()
		}
	}
}
