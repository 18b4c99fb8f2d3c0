// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/mcs/publish"
	"github.com/mcsnap/mcsnap/mcs/source/directory"
	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// The folders whose worker pool is measured: OpenShift's own config where it is at hand, else the project's example.
var measuredFolders = []string{"../../../shared/fixtures/openshift-bootstrap", "../../e2e/example/cluster"}

// measured returns the answer for a real worker pool.
func measured(b *testing.B) *publish.Answer {
	b.Helper()
	for _, dir := range measuredFolders {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		kept, silent := store.NewMemory(), slog.New(slog.DiscardHandler)
		view, _ := directory.New(directory.Config{Dir: dir, Store: kept, Log: silent}).Load(context.Background())
		publisher := publish.New(publish.Config{Store: kept, Log: silent})
		publisher.Update(context.Background(), view)
		answer, ok := publisher.Answer("worker")
		if !ok || !answer.Ready() {
			b.Fatalf("%s: worker is not served: %+v", dir, answer)
		}
		return answer
	}
	b.Fatal("no folder to measure; run the benchmark in the repository")
	return nil
}

const accept35 = "application/vnd.coreos.ignition+json;version=3.5.0, */*;q=0.1"

// plainly is the peer: the same standard library, the same bytes and headers, one line to the same kind of log, and no
// logic.
func plainly(body []byte, header http.Header, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		h := w.Header()
		for name, values := range header {
			h[name] = values
		}
		n, _ := w.Write(body)
		log.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("method", r.Method), slog.String("path", r.URL.Path),
			slog.String("address", r.RemoteAddr), slog.Int("bytes", n), slog.Duration("duration", time.Since(begun)))
	})
}

// barely answers on bare crypto/tls: it reads a request's header, writes the same answer in one go and closes.
func barely(l net.Listener, config *tls.Config, answer []byte) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			secure := tls.Server(conn, config)
			defer func() { _ = secure.Close() }()
			lines := bufio.NewReader(secure)
			for {
				line, err := lines.ReadSlice('\n')
				if err != nil {
					return
				}
				if len(bytes.TrimSpace(line)) == 0 {
					break
				}
			}
			_, _ = secure.Write(answer)
		}()
	}
}

// speed is one server with its peers, on ports of this machine and with one certificate.
type speed struct {
	ours, plain string // addresses
	bare, tuned string // likewise: crypto/tls as it comes, and with the records of TLSConfig.Build
	client      *tls.Config
	body        int
}

func newSpeed(b *testing.B) *speed {
	b.Helper()
	answer := measured(b)
	body := answer.Bodies[specver.V3_5]
	discarded := slog.New(slog.NewTextHandler(io.Discard, nil))
	f := newFixture(b, func(c *Config) { c.Log = discarded })
	f.answers.set(answer)
	r := f.run(b, "127.0.0.1:0", TLSConfig{})
	header := f.do("GET", "/config/worker", "Accept: "+accept35).Header

	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = l.Close() })
		return l
	}
	plain, bare, tuned := listen(), listen(), listen()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	server := &http.Server{Handler: plainly(body.JSON, header, discarded), Protocols: protocols}
	go func() { _ = server.Serve(tls.NewListener(plain, r.tls)) }()
	b.Cleanup(func() { _ = server.Close() })
	whole := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body.JSON), body.JSON)
	asItComes := r.tls.Clone()
	asItComes.DynamicRecordSizingDisabled = false
	go barely(bare, asItComes, whole)
	go barely(tuned, r.tls, whole)
	return &speed{
		ours: r.addr, plain: plain.Addr().String(), bare: bare.Addr().String(), tuned: tuned.Addr().String(), body: len(body.JSON),
		client: &tls.Config{RootCAs: r.roots, ServerName: "localhost", MinVersion: tls.VersionTLS13},
	}
}

// ask sends one request over a connection and reads the answer.
func (s *speed) ask(conn net.Conn, lines *bufio.Reader, closing bool) error {
	request := "GET /config/worker HTTP/1.1\r\nHost: mcs\r\nUser-Agent: Ignition/2.26.0\r\nAccept: " + accept35 + "\r\nAccept-Encoding: identity\r\n"
	if closing {
		request += "Connection: close\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return err
	}
	length := -1
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		if line == "\r\n" {
			break
		}
		if value, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return err
			}
		}
	}
	if length != s.body {
		return fmt.Errorf("%d bytes announced, want %d", length, s.body)
	}
	_, err := lines.Discard(length)
	return err
}

// keepAlive asks n times over 16 connections.
func (s *speed) keepAlive(b *testing.B, addr string, n int) pace {
	b.Helper()
	const connections = 16
	var all sync.WaitGroup
	var readers []*bufio.Reader
	var conns []net.Conn
	for range connections {
		conn, err := tls.Dial("tcp", addr, s.client)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		conns, readers = append(conns, conn), append(readers, bufio.NewReaderSize(conn, 64<<10))
	}
	return timed(n, func() {
		for i := range connections {
			all.Go(func() {
				for range n / connections {
					if err := s.ask(conns[i], readers[i], false); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	})
}

// fresh asks n times, each time over a connection of its own, four at a time.
func (s *speed) fresh(b *testing.B, addr string, n int) pace {
	b.Helper()
	const at = 4
	var all sync.WaitGroup
	return timed(n, func() {
		for range at {
			all.Go(func() {
				for range n / at {
					conn, err := tls.Dial("tcp", addr, s.client)
					if err == nil {
						err = s.ask(conn, bufio.NewReaderSize(conn, 64<<10), true)
						_ = conn.Close()
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	})
}

// pace is how fast a server answered, by the clock and by the processor time that server and client took together. The
// second does not depend on what else the machine does.
type pace struct{ clock, processor float64 } // requests per second

// timed asks n requests by do and returns their pace.
func timed(n int, do func()) pace {
	processor, begun := processorTime(), time.Now()
	do()
	return pace{float64(n) / time.Since(begun).Seconds(), float64(n) / (processorTime() - processor).Seconds()}
}

func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// comparison is what many rounds came to: medians, and the medians of the rounds' ratios.
type comparison struct{ ours, peer, ratio pace }

// compare measures two servers in turn, so that both meet the same moods of the machine.
func compare(rounds int, ours, peer func() pace) comparison {
	var a, p, r []pace
	for i := range rounds {
		var x, y pace
		if i%2 == 0 {
			x, y = ours(), peer()
		} else {
			y, x = peer(), ours()
		}
		a, p, r = append(a, x), append(p, y), append(r, pace{x.clock / y.clock, x.processor / y.processor})
	}
	return comparison{median(a), median(p), median(r)}
}

func median(rates []pace) pace {
	middle := func(of func(pace) float64) float64 {
		var values []float64
		for _, r := range rates {
			values = append(values, of(r))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return pace{middle(func(r pace) float64 { return r.clock }), middle(func(r pace) float64 { return r.processor })}
}

// report prints a comparison and its goal, the least share of the peer's pace in percent.
func (c comparison) report(b *testing.B, name string, goal int) {
	b.ReportMetric(c.ours.clock, "requests/s")
	b.ReportMetric(c.peer.clock, "peer-requests/s")
	figure(name, c.ours.clock, "requests/s", "reported")
	figure(name+"-peer", c.peer.clock, "requests/s", "reported")
	figure(name+"-ratio", 100*c.ratio.clock, "percent", fmt.Sprintf(">=%d", goal))
	figure(name+"-processor-ratio", 100*c.ratio.processor, "percent", fmt.Sprintf(">=%d", goal))
}

// figure prints one figure for people and scripts.
func figure(name string, value float64, unit, bound string) {
	fmt.Fprintf(os.Stderr, "bench: %s %.4g %s goal %s\n", name, value, unit, bound)
}

// The server against the same net/http server without its logic, over 16 connections that are kept.
func BenchmarkKeepAlive(b *testing.B) {
	s := newSpeed(b)
	var c comparison
	for b.Loop() {
		c = compare(41,
			func() pace { return s.keepAlive(b, s.ours, 480) },
			func() pace { return s.keepAlive(b, s.plain, 480) })
	}
	c.report(b, "keepalive", 90)
}

// The server against bare crypto/tls as it comes, every request over a connection of its own, as machines boot; and, to tell
// what is whose, against crypto/tls with this server's record sizes and against net/http without this server's logic.
func BenchmarkFreshConnections(b *testing.B) {
	s := newSpeed(b)
	var c, tuned, plain comparison
	ask := func(addr string) func() pace { return func() pace { return s.fresh(b, addr, 120) } }
	for b.Loop() {
		c = compare(41, ask(s.ours), ask(s.bare))
		tuned = compare(21, ask(s.ours), ask(s.tuned))
		plain = compare(21, ask(s.ours), ask(s.plain))
	}
	c.report(b, "fresh-connection", 95)
	figure("fresh-connection-tuned-peer-ratio", 100*tuned.ratio.clock, "percent", "reported")
	figure("fresh-connection-plain-peer-ratio", 100*plain.ratio.clock, "percent", "reported")
}

// What the handler costs by itself.
func BenchmarkHandler(b *testing.B) {
	f := newFixture(b, func(c *Config) { c.AccessLog = false })
	request, err := http.NewRequest("GET", "https://mcs/config/worker", nil)
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Accept", accept35)
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		f.ServeHTTP(w, request)
	}
	figure("handler-allocations", testing.AllocsPerRun(1000, func() { f.ServeHTTP(w, request) }), "per-request", "=0")
}
