// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net"
	"strings"
	"testing"
	"time"
)

// tight is a listener whose connections take few bytes on credit: what a test's client has not read, the server has not
// got rid of.
type tight struct{ net.Listener }

func (l tight) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		_ = conn.(*net.TCPConn).SetWriteBuffer(16 << 10)
	}
	return conn, err
}

// Field case 63 in its full size: a megabyte to a client that reads 20 KB a second arrives whole, with the server's own
// times; it takes most of a minute. TestSlowReaders shows the same within a second, with a stall time of one.
func TestSlowLink(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.listening = func(l net.Listener) net.Listener { return tight{l} }
	want := large(f, 1_000_000)
	r := f.run(t, "127.0.0.1:0", TLSConfig{})
	got := slowly(t, r.dialSmall(t, "/config/worker"), 20_000, time.Second)
	if _, body, _ := strings.Cut(got, "\r\n\r\n"); body != want {
		t.Errorf("the client got %d bytes of %d", len(body), len(want))
	}
}
