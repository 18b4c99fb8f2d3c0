// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
	"github.com/mcsnap/mcsnap/ignition-stub/fetch/fetchtest"
)

// resolver answers the nth look-up (from 1).
type resolver func(n int, host string) ([]net.IPAddr, error)

type counting struct {
	answer resolver
	n      atomic.Int64
}

func (c *counting) LookupIPAddr(_ context.Context, host string) ([]net.IPAddr, error) {
	return c.answer(int(c.n.Add(1)), host)
}

func addresses(list ...string) (found []net.IPAddr) {
	for _, address := range list {
		found = append(found, net.IPAddr{IP: net.ParseIP(address)})
	}
	return found
}

func port(t *testing.T, server *httptest.Server) string {
	t.Helper()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// Field case 67: first no resolver, then nobody at the address, then a server that hangs before its headers, then one
// that works. Each phase is told once, with its cause.
func TestAMachineThatBoots(t *testing.T) {
	server := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n <= 3 {
			<-r.Context().Done()
			return
		}
		w.Write(document)
	})
	names := &counting{answer: func(n int, host string) ([]net.IPAddr, error) {
		switch {
		case n <= 5:
			return nil, &net.DNSError{Err: "read udp 127.0.0.1:53: connection refused", Name: host}
		case n <= 10:
			return addresses("127.0.0.77"), nil // nobody listens there
		}
		return addresses("127.0.0.1"), nil
	}}
	var log bytes.Buffer
	o := quick(fetch.Options{Resolver: names, AttemptTimeout: 200 * time.Millisecond, Deadline: 20 * time.Second, Log: slog.New(slog.NewTextHandler(&log, nil))})
	result, err := newFetcher(t, o).Get(t.Context(), fetch.Request{URLs: []string{"http://api-int.test:" + port(t, server)}})
	if err != nil || !bytes.Equal(result.Body, document) {
		t.Fatalf("%v\n%s", err, log.String())
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for i, want := range []string{"no resolver configured, or it refuses", "nothing listens there", "the server hangs", "msg=arrived"} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Fatalf("want %d lines, line %d with %q:\n%s", 4, i, want, log.String())
		}
	}
	if len(lines) != 4 {
		t.Errorf("%d lines, want 4:\n%s", len(lines), log.String())
	}
}

// Of several servers behind one name the next is asked in each round: one that accepts and fails does not hide the rest.
func TestRoundsTurnTheAddresses(t *testing.T) {
	var asked []string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local := r.Context().Value(http.LocalAddrContextKey).(net.Addr).(*net.TCPAddr).IP.String()
		if asked = append(asked, local); local != "127.0.0.3" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Write(document)
	})
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	t.Cleanup(func() { server.Close() })
	go server.Serve(listener) //nolint:errcheck // ends with the test
	o := quick(fetch.Options{Resolver: &counting{answer: func(int, string) ([]net.IPAddr, error) {
		return addresses("127.0.0.1", "127.0.0.2", "127.0.0.3"), nil
	}}})
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if _, err := newFetcher(t, o).Get(t.Context(), fetch.Request{URLs: []string{"http://api-int.test:" + port}}); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(asked) != "[127.0.0.1 127.0.0.2 127.0.0.3]" {
		t.Errorf("asked %v", asked)
	}
}

// Field case 91: the proxy of the environment is used, and not for hosts that it excepts.
func TestProxyOfTheEnvironment(t *testing.T) {
	ca := fetchtest.NewCA(t, "ca")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(document) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{ca.Issue(t, func(c *x509.Certificate) { c.DNSNames = []string{"api-int.test"} })}}
	server.StartTLS()
	t.Cleanup(server.Close)
	var tunnels atomic.Int64
	proxy := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != "api-int.test:22623" {
			t.Errorf("the proxy is asked to %s %s", r.Method, r.Host)
		}
		tunnels.Add(1)
		out, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		in, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { defer out.Close(); io.Copy(out, in) }()
		go func() { defer in.Close(); io.Copy(in, out) }()
	})
	t.Setenv("HTTPS_PROXY", proxy.URL)
	get := func() error {
		o := quick(fetch.Options{CA: ca.PEM, Deadline: 2 * time.Second, Resolver: &counting{answer: func(_ int, host string) ([]net.IPAddr, error) {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}}})
		o.Proxy, o.Sleep = nil, nil
		_, err := newFetcher(t, o).Get(t.Context(), fetch.Request{URLs: []string{"https://api-int.test:22623/config/worker"}})
		return err
	}
	if err := get(); err != nil || tunnels.Load() != 1 {
		t.Errorf("through the proxy: %v, %d tunnels", err, tunnels.Load())
	}
	t.Setenv("NO_PROXY", ".test")
	wantKind(t, get(), fetch.NoName)
}

// A server that gives less of the rest than it was asked for is asked for the rest of that.
func TestResumedByPieces(t *testing.T) {
	server := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		var begins int
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &begins); err != nil {
			http.ServeContent(&cutter{ResponseWriter: w, left: 100}, r, "", time.Time{}, bytes.NewReader(document))
			return
		}
		ends := min(begins+20_000, len(document))
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", begins, ends-1, len(document)))
		w.WriteHeader(http.StatusPartialContent)
		w.Write(document[begins:ends])
	})
	result, err := newFetcher(t, quick(fetch.Options{})).Get(t.Context(), fetch.Request{URLs: []string{server.URL}})
	if err != nil || !bytes.Equal(result.Body, document) || result.Resumed != 4 {
		t.Fatalf("%+v, %v", result, err)
	}
}
