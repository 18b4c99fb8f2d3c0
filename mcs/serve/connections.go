// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"io"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// connectionLog takes what net/http says of connections that never became a request, which are TLS handshakes for the
// most part (scanners, load balancers' probes, stubs with another CA), and says it as this server says things. Who
// opens connections decides how many there are, so each kind is said once in a while, with how many there were.
func connectionLog(to *slog.Logger, metrics *Metrics) *log.Logger {
	return log.New(&connectionLines{log: to, metrics: metrics, now: time.Now}, "", 0)
}

// saidEvery is how long a kind of trouble is only counted after it was said.
const saidEvery = time.Minute

type connectionLines struct {
	log     *slog.Logger
	metrics *Metrics
	now     func() time.Time

	mu   sync.Mutex
	said map[string]*kindSaid
}

// kindSaid is what became of one kind of trouble.
type kindSaid struct {
	next   time.Time // not said again before
	silent int       // how many were only counted since
}

var _ io.Writer = (*connectionLines)(nil)

const (
	handshakeLine = "http: TLS handshake error from "
	panicLine     = "http: panic"
)

func (c *connectionLines) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	switch {
	case bytes.HasPrefix(line, []byte(panicLine)):
		c.log.Error("a request made the server panic", "problem", text)
	case strings.HasPrefix(text, handshakeLine):
		// The address is net.Addr's and has no ": " in it.
		address, why, _ := strings.Cut(strings.TrimPrefix(text, handshakeLine), ": ")
		kind, remedy := handshakeKind(why)
		c.metrics.handshakes.WithLabelValues(kind).Inc()
		c.say(kind, "a TLS handshake failed", slog.String("address", printable(address)), slog.String("code", kind),
			slog.String("reason", printable(why)), slog.String("remedy", remedy))
	default:
		c.say("other", "a connection failed", slog.String("reason", printable(text)))
	}
	return len(line), nil
}

// handshakeKinds tell by crypto/tls's words what ails a handshake. The kinds are a closed set, for the metric.
var handshakeKinds = []struct{ kind, words, remedy string }{
	{"unknown-ca", "unknown certificate authority", "the client does not trust this server's certificate; render its stub with the CA that issued it"},
	{"bad-certificate", "bad certificate", "the client refuses this server's certificate; compare its name and dates with the stub's URL and the client's clock"},
	{"bad-certificate", "expired certificate", "the client takes this server's certificate for expired; look at its dates and at the client's clock"},
	{"bad-certificate", "unknown certificate", "the client refuses this server's certificate; compare its name and dates with the stub's URL and the client's clock"},
	{"plain-http", "client sent an HTTP request", "the client speaks HTTP without TLS; write https in its URL, or listen with --listen-plain"},
	{"not-tls", "first record does not look like", "the client does not speak TLS"},
	{"version", "unsupported versions", "the client's TLS is older than --tls-min-version"},
	{"version", "protocol version not supported", "the client's TLS is older than --tls-min-version"},
	{"suites", "no cipher suite", "the client has none of --tls-cipher-suites"},
	{"gone", "timeout", "the client was too slow or went away"},
	{"gone", "EOF", "the client went away; a probe of a load balancer does"},
	{"gone", "connection reset", "the client went away; a probe of a load balancer does"},
}

func handshakeKind(why string) (kind, remedy string) {
	for _, k := range handshakeKinds {
		if strings.Contains(why, k.words) {
			return k.kind, k.remedy
		}
	}
	return "other", "see the reason"
}

// say logs one of a kind, unless one was logged a short while ago. The one after tells how many were passed over.
func (c *connectionLines) say(kind, message string, more ...slog.Attr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said == nil {
		c.said = map[string]*kindSaid{}
	}
	state := c.said[kind]
	if state == nil {
		state = &kindSaid{}
		c.said[kind] = state
	}
	now := c.now()
	if now.Before(state.next) {
		state.silent++
		return
	}
	more = append(more, slog.Int("not_said_since", state.silent))
	state.next, state.silent = now.Add(saidEvery), 0
	level := slog.LevelWarn
	if kind == "gone" { // every probe of a load balancer
		level = slog.LevelDebug
	}
	c.log.LogAttrs(context.Background(), level, message, more...)
}
