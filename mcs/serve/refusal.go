// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"log/slog"
	"net/http"
	"strconv"
	"sync"
)

// A refusal is any answer that is not a body. Ignition retries 503 for ever and ends the boot on every other status
// used here, so the status is the point: 503 for whatever may become true.
type refusal struct {
	status int
	// code is one of a closed set, for metrics and logs.
	code string
	// text is one line for the person who reads the answer: what is wrong and what to do. It holds no secret and
	// nothing of the request beyond a checked pool name or digest.
	text string
}

// retryAfter is advice, in seconds, for clients that obey it. Ignition does not: it comes back after 0.2 s, doubling
// to 5 s. It is small, so that an obedient client is not slower than Ignition.
const retryAfter = "5"

// notNow is a refusal that waiting can mend.
func notNow(code, text string) *refusal {
	return &refusal{http.StatusServiceUnavailable, code, text}
}

var (
	closeConnection = []string{"close"}
	plainText       = []string{"text/plain; charset=utf-8"}
	noSniff         = []string{"nosniff"}
	noStore         = []string{"no-store"}
	retryAfterValue = []string{retryAfter}
	allowedMethods  = []string{"GET, HEAD"}
	challenge       = []string{`Bearer realm="mcsnap"`}
)

// write sends the refusal and returns how many bytes of body that took.
func (f *refusal) write(w http.ResponseWriter, method string) int {
	h := w.Header()
	clear(h)
	h["Content-Type"] = plainText
	h["X-Content-Type-Options"] = noSniff
	h["Cache-Control"] = noStore
	// A load balancer pins a connection to one server. Only a new connection can reach another, healthy one.
	h["Connection"] = closeConnection
	switch f.status {
	case http.StatusServiceUnavailable:
		h["Retry-After"] = retryAfterValue
	case http.StatusMethodNotAllowed:
		h["Allow"] = allowedMethods
	case http.StatusUnauthorized:
		h["Www-Authenticate"] = challenge
	}
	body := f.text + "\n"
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(f.status)
	if method == http.MethodHead {
		return 0
	}
	n, _ := w.Write([]byte(body))
	return n
}

// complaints sees to it that a refusal is said once per pool and reason, however many nodes run into it.
type complaints struct {
	log  *slog.Logger
	mu   sync.Mutex
	said map[complaint]bool
}

type complaint struct{ pool, code, text string }

// most bounds what clients can make the server remember and print with pool names they invent.
const mostComplaints = 1000

// say logs the refusal unless the same was said since the pool was last forgotten.
func (c *complaints) say(pool string, f *refusal) {
	key := complaint{pool, f.code, f.text}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said[key] || len(c.said) >= mostComplaints {
		return
	}
	if c.said == nil {
		c.said = map[complaint]bool{}
	}
	c.said[key] = true
	c.log.Warn("refused; said once for this pool and reason", "pool", pool, "status", f.status, "code", f.code, "reason", f.text)
}

// forget makes room to say things again about a pool that has a new answer.
func (c *complaints) forget(pool string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.said {
		if key.pool == pool {
			delete(c.said, key)
		}
	}
}
