// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Field case 55: families in turn, another address first in each round, this machine's own last.
func TestOrder(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("127.0.0.1")}
	for _, c := range []struct {
		found string
		round int
		want  string
	}{
		{"10.0.0.1", 0, "[10.0.0.1]"},
		{"10.0.0.1", 7, "[10.0.0.1]"},
		{"10.0.0.1 10.0.0.2 fd00::1", 0, "[fd00::1 10.0.0.1 10.0.0.2]"},
		{"10.0.0.1 10.0.0.2 fd00::1", 1, "[10.0.0.1 10.0.0.2 fd00::1]"},
		{"10.0.0.1 10.0.0.2 fd00::1", 4, "[10.0.0.1 10.0.0.2 fd00::1]"},
		{"10.0.0.9 10.0.0.1", 0, "[10.0.0.1 10.0.0.9]"},
		{"10.0.0.9 10.0.0.1", 1, "[10.0.0.1 10.0.0.9]"},
		{"10.0.0.9", 0, "[10.0.0.9]"},
		{"127.0.0.1 10.0.0.1", 0, "[127.0.0.1 10.0.0.1]"}, // loopback is asked for on purpose
	} {
		var found []net.IPAddr
		for _, address := range strings.Fields(c.found) {
			found = append(found, net.IPAddr{IP: net.ParseIP(address)})
		}
		if got := fmt.Sprint(order(found, own, c.round)); got != c.want {
			t.Errorf("%s in round %d: %s, want %s", c.found, c.round, got, c.want)
		}
	}
}

// Field case 69: an address that swallows packets costs its head start, not the attempt.
func TestRace(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	swallow := &net.Dialer{ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		if strings.HasPrefix(address, "127.0.0.77") {
			<-ctx.Done()
		}
		return ctx.Err()
	}}
	began := time.Now()
	conn, err := race(t.Context(), swallow, "tcp", []string{"127.0.0.77", "127.0.0.1"}, port)
	if took := time.Since(began); err != nil || took < headStart || took > 20*time.Second {
		t.Fatalf("%v in %v; want a connection after the head start, long before a dead address gives up", err, took)
	}
	conn.Close()
	if _, err := race(t.Context(), &net.Dialer{}, "tcp", []string{"127.0.0.77", "127.0.0.78"}, port); err == nil {
		t.Error("two dead addresses gave a connection")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := race(ctx, swallow, "tcp", []string{"127.0.0.77"}, port); err == nil {
		t.Error("a connection after the time was over")
	}
}

// Networks of IPv6 alone: an address in brackets, and a name that has no other.
func TestIPv6Alone(t *testing.T) {
	listener, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatalf("the loopback interface has no IPv6: %v", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "six") })}
	t.Cleanup(func() { server.Close() })
	go server.Serve(listener) //nolint:errcheck // ends with the test
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	f, err := New(Options{Deadline: 5 * time.Second, Resolver: only("::1")})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"[::1]", "api-int.test"} {
		result, err := f.Get(t.Context(), Request{URLs: []string{"http://" + host + ":" + port}})
		if err != nil || !bytes.Equal(result.Body, []byte("six")) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

type only string

func (o only) LookupIPAddr(context.Context, string) ([]net.IPAddr, error) {
	return []net.IPAddr{{IP: net.ParseIP(string(o))}}, nil
}
