// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"
)

// cutter is a connection that delays what it carries and breaks, also in the middle of an event.
type cutter struct {
	after int // bytes, about
	cuts  atomic.Int32
}

func (c *cutter) count() int { return int(c.cuts.Load()) }

func (c *cutter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil && request.URL.Query().Get("watch") != "" {
			left := rand.IntN(2 * c.after)
			if request.URL.Query().Get("sendInitialEvents") != "" {
				left += 30 * c.after // what is there already has to come through
			}
			response.Body = &cutBody{response.Body, c, left}
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

type cutBody struct {
	io.ReadCloser
	cutter *cutter
	left   int
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.cutter.cuts.Add(1)
		return 0, errors.New("the connection was cut")
	}
	time.Sleep(rand.N(5 * time.Millisecond))
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
