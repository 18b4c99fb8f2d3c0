// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"bytes"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
)

const (
	machines   = 200
	period     = time.Second // the server is up for the first fifth of it, and refuses in the rest
	up         = period / 5
	killed     = 0.3                    // of the connections, at a random byte
	backoffMax = 400 * time.Millisecond // the longest pause between two attempts
)

// 200 machines against a server that is up one second in five (here: a fifth of each second) and kills three of ten
// connections at random: all arrive, within a bounded time.
//
// The bound: pauses are uniform in [0, backoffMax], so that two attempts lie no further apart than backoffMax and an
// attempt falls into each up time with probability at least up/backoffMax = 1/2; it survives with probability 1-killed.
// So a machine needs k periods with a probability of less than (1 - 0.5*0.7)^k = 0.65^k. That one of 200 needs more than
// 32 is less likely than 1 in 4,000 (resumed bodies make it less likely still).
func TestMachinesThroughAnOutage(t *testing.T) {
	const bound = 32 * period
	server := newFlickering(t)
	times := make([]time.Duration, machines)
	var attempts, resumed sync.Map
	var all sync.WaitGroup
	for i := range machines {
		all.Go(func() {
			o := quick(fetch.Options{Deadline: bound, BackoffMin: 50 * time.Millisecond, BackoffMax: backoffMax, AttemptTimeout: 10 * time.Second})
			o.Sleep = nil
			f, err := fetch.New(o)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			began := time.Now()
			result, err := f.Get(t.Context(), fetch.Request{URLs: []string{"http://" + server}, Digest: sha256Of(document)})
			times[i] = time.Since(began)
			if err != nil {
				t.Errorf("machine %d: %v", i, err)
				return
			}
			if !bytes.Equal(result.Body, document) {
				t.Errorf("machine %d has other bytes", i)
			}
			attempts.Store(i, result.Attempts)
			resumed.Store(i, result.Resumed)
		})
	}
	all.Wait()
	sum := func(m *sync.Map) (n int) {
		m.Range(func(_, v any) bool { n += v.(int); return true })
		return n
	}
	slices.Sort(times)
	t.Logf("%d machines, up %v in %v, %.0f %% of connections killed: median %v, worst %v, bound %v; %d attempts, %d of them resumed",
		machines, up, period, killed*100, times[machines/2].Round(time.Millisecond), times[machines-1].Round(time.Millisecond), bound, sum(&attempts), sum(&resumed))
}

// newFlickering serves the document in a fifth of each period, the last one at first, and returns its address.
func newFlickering(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		if rand.Float64() < killed {
			w = &cutter{ResponseWriter: w, left: rand.IntN(len(document))}
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(document))
	})}
	t.Cleanup(func() { server.Close() })
	go server.Serve(&flickering{Listener: listener, began: time.Now().Add(-up)}) //nolint:errcheck // ends with the test
	return listener.Addr().String()
}

type flickering struct {
	net.Listener
	began time.Time
}

func (f *flickering) Accept() (net.Conn, error) {
	for {
		conn, err := f.Listener.Accept()
		if err != nil || time.Since(f.began)%period < up {
			return conn, err
		}
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
}
