// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/e2e/server"
)

const (
	loadConnections = 1000
	loadRequests    = 100_000
	// inFlight is what one connection may hold while it is served: net/http's two buffers, a TLS record on its way
	// and its source, and goroutine stacks.
	inFlight = 64 << 10
)

// BenchmarkMemory has 1,000 connections ask 100,000 times, and looks at the process: its memory against idle, how long
// the slowest answers took, and what is left afterwards.
func BenchmarkMemory(b *testing.B) {
	folder := "../../../../shared/fixtures/openshift-bootstrap"
	if _, err := os.Stat(folder); err != nil {
		folder = "../../../e2e/example/cluster"
	}
	for b.Loop() {
		s := server.Start(b, "bootstrap", "--dir", folder, "--no-credentials", "--dev-tls", "--agent", "none", "--access-log=false")
		served(s)
		idle := s.Memory("VmRSS")
		before := s.Gauge("go_goroutines")
		took := load(b, s, loadConnections, loadRequests)
		// Connections have ended; what they held goes back to the system in the garbage collector's own time.
		peak := s.Memory("VmHWM")
		var after float64
		for range 100 {
			if after = s.Gauge("go_goroutines"); after <= before {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		buffers := loadConnections * inFlight
		figure := func(name string, value float64, unit, bound string) {
			fmt.Fprintf(os.Stderr, "bench: %s %.4g %s goal %s\n", name, value, unit, bound)
		}
		figure("load-rss-idle", float64(idle)/1e6, "MB", "reported")
		figure("load-rss-peak", float64(peak)/1e6, "MB", "reported")
		figure("load-rss-ratio", 100*float64(peak)/float64(idle+buffers), "percent-of-idle-and-buffers", "<=120")
		figure("load-p50", took[len(took)/2].Seconds()*1e3, "ms", "reported")
		figure("load-p99", took[len(took)*99/100].Seconds()*1e3, "ms", "reported")
		figure("load-goroutines-left", after-before, "goroutines", "<=0")
	}
}

// load asks over connections that stay open and returns the times of all requests, sorted.
func load(t testing.TB, s *server.Test, connections, requests int) []time.Duration {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(s.State, "tls", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	times := make([][]time.Duration, connections)
	var all sync.WaitGroup
	dialling := make(chan struct{}, 32)
	for i := range connections {
		all.Go(func() {
			dialling <- struct{}{}
			conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL(), "https://"), config)
			<-dialling
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			lines := bufio.NewReader(conn)
			for range requests / connections {
				begun := time.Now()
				if _, err := io.WriteString(conn, "GET /config/worker HTTP/1.1\r\nHost: mcs\r\nAccept-Encoding: identity\r\n\r\n"); err != nil {
					t.Error(err)
					return
				}
				reply, err := http.ReadResponse(lines, nil)
				if err == nil {
					_, err = io.Copy(io.Discard, reply.Body)
				}
				if err != nil || reply.StatusCode != http.StatusOK {
					t.Errorf("%v, %v", reply, err)
					return
				}
				times[i] = append(times[i], time.Since(begun))
			}
		})
	}
	all.Wait()
	took := slices.Concat(times...)
	slices.Sort(took)
	return took
}
