// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// limited is a listener that closes connections beyond a bound as soon as it has accepted them. To Ignition that is a
// connection error, which it retries for ever; waiting in the kernel's queue would eat its ten seconds instead.
type limited struct {
	net.Listener
	open   *atomic.Int64
	most   int64
	refuse func() // counts a refusal
	stall  time.Duration
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) > l.most {
			l.open.Add(-1)
			_ = conn.Close()
			l.refuse()
			continue
		}
		return &patient{Conn: conn, stall: l.stall, closed: func() { l.open.Add(-1) }}, nil
	}
}

// patient is a connection with no limit on how long an answer takes, and one on how long its reader may take nothing
// at all. A whole body on a slow link is worth any wait, since Ignition does not resume; a peer that is gone is not.
type patient struct {
	net.Conn
	stall  time.Duration
	once   sync.Once
	closed func()
}

// piece is how much the peer must take within one stall time: small enough for the slowest link, and larger than a TLS
// record with its head and tag, which would otherwise take two writes each.
const piece = 32 << 10

func (c *patient) Write(b []byte) (written int, err error) {
	for {
		if err := c.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(b[written:min(written+piece, len(b))])
		written += n
		if err != nil || written == len(b) {
			return written, err
		}
	}
}

func (c *patient) Close() error {
	c.once.Do(c.closed)
	return c.Conn.Close()
}
