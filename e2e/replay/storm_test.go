// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mcsnap/mcsnap/e2e/kube"
)

// slowAPI passes requests on to an API server after a while, and counts them by path.
type slowAPI struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int
}

func newSlowAPI(t *testing.T, c *kube.Cluster, latency time.Duration) *slowAPI {
	t.Helper()
	transport, err := rest.TransportFor(c.Admin)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(c.Admin.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport, FlushInterval: -1, // a watch is told at once
	}
	slow := &slowAPI{asked: map[string]int{}}
	slow.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		slow.mu.Lock()
		slow.asked[r.URL.Path]++
		slow.mu.Unlock()
		time.Sleep(latency)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(slow.CloseClientConnections)
	return slow
}

// Field case 58: a thousand machines reboot together, and the API server takes two seconds for anything. No machine waits
// longer for its answer's header than Ignition does (the client gives up after the same ten seconds, and a machine that is
// told "not now" asks again), none fails, the API server is asked once for each kind of object or object and not for
// machines, and nothing of the storm is left in the server.
func TestRebootStorm(t *testing.T) {
	const machines = 1000
	c := kube.Start(t, kube.Options{})
	name := "rendered-worker-" + strings.Repeat("a", 32)
	c.Apply(kube.Configs, "", kube.Rendered(name, name+" ", 20_000))
	c.Apply(kube.Pools, "", kube.Pool("worker", name, name, 1))
	slow := newSlowAPI(t, c, 2*time.Second)
	s := newServer(t, c, c.Kubeconfig(&rest.Config{Host: slow.URL}))
	s.Up()
	booted := make([]*node, machines)
	failed := make([]error, machines)
	var all sync.WaitGroup
	for i := range booted {
		booted[i] = &node{client: s.Client(), url: s.URL() + "/config/worker"}
		all.Go(func() {
			failed[i] = booted[i].boot(t.Context())
			booted[i].client.CloseIdleConnections()
		})
	}
	all.Wait()
	failures, retries := 0, 0
	for i, err := range failed {
		retries += booted[i].retries
		if err != nil {
			failures++
			t.Errorf("machine %d: %v", i, err)
		}
	}
	slow.mu.Lock()
	calls := 0
	for path, n := range slow.asked {
		if calls += n; n > 1 {
			t.Errorf("%s was asked for %d times", path, n)
		}
	}
	slow.mu.Unlock()
	idle := s.Gauge("go_goroutines")
	s.Eventually("connections have ended", func() error {
		if now := s.Gauge("go_goroutines"); now < idle {
			idle = now
		}
		if idle > 60 { // a connection takes one; the server's own are some dozens
			return fmt.Errorf("%v goroutines", idle)
		}
		return nil
	})
	t.Logf("storm: machines=%d failures=%d retries=%d api-calls=%d goroutines-after=%v", machines, failures, retries, calls, idle)
}
