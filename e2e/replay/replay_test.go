// SPDX-License-Identifier: Apache-2.0

// Package replay_test plays the incident that started mcsnap (openshift/machine-config-operator#301) against the built
// server on a real API server: four configs are rendered within four seconds, each older one is deleted the moment the
// next exists, and fifty machines boot meanwhile.
package replay_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/e2e/kube"
	"github.com/mcsnap/mcsnap/e2e/server"
)

// generation is one rendered config of the incident, and when after the first it came.
type generation struct {
	name    string
	after   time.Duration
	sources []string
}

var incident = []generation{
	{"master-46c05bfb9cb3d4e05608277bb2cb0a5d", 0, []string{"00-master"}},
	{"master-7734c782bad1ead0f8ef5b6affcaf35c", 1107 * time.Millisecond, []string{"00-master", "00-master-osimageurl"}},
	{"master-383ca913310d861fee0be89e6f1d0127", 2002 * time.Millisecond, []string{"00-master", "00-master-osimageurl", "00-master-ssh"}},
	{"master-a206c9459a44d859587164a68bb484f2", 4001 * time.Millisecond, []string{"00-master", "00-master-osimageurl", "00-master-ssh", "01-master-kubelet"}},
}

// latecomers of the nodes boot when the server has seen the last generation.
const (
	nodes      = 50
	latecomers = 10
)

// story is one way to play it.
type story struct {
	// collected has the real garbage collector delete the configs, after their owner is gone.
	collected bool
	// at the given time after the first config something happens.
	stopAPI, startAPI, killServer, startServer time.Duration
}

// Field cases 1, 3, 9 and 12: whatever becomes of a rendered config, every machine gets a body that carries what it
// names.
func TestReplay(t *testing.T) {
	for _, c := range []struct {
		name  string
		story story
	}{
		{"the incident", story{}},
		{"collected through owner references", story{collected: true}},
		{"the API server is away in the middle", story{stopAPI: 2500 * time.Millisecond, startAPI: 3500 * time.Millisecond}},
		{"killed and restarted without the API server", story{
			stopAPI: 2500 * time.Millisecond, killServer: 2700 * time.Millisecond, startServer: 3 * time.Second, startAPI: 6 * time.Second,
		}},
	} {
		t.Run(c.name, func(t *testing.T) { play(t, c.story, c.name == "the incident") })
	}
}

// play plays a story and prints its figures; the main one's are the last line of make replay.
func play(t *testing.T, story story, main bool) {
	c := kube.Start(t, kube.Options{})
	if story.collected {
		c.Collect()
	}
	s := newServer(t, c, c.Kubeconfig(c.Admin))
	s.Up()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()

	begun := time.Now()
	var all sync.WaitGroup
	served := make(chan struct{}) // the last generation is
	all.Go(func() {
		defer close(served)
		render(ctx, t, c, begun, story.collected)
		settled(ctx, t, s)
	})
	for at, act := range map[time.Duration]func(){
		story.stopAPI: c.StopAPI, story.startAPI: c.StartAPI, story.killServer: s.Kill, story.startServer: s.Up,
	} {
		if at > 0 {
			all.Go(func() { time.Sleep(time.Until(begun.Add(at))); act() })
		}
	}
	// Most machines ask while it happens, the others once the last generation is served: how long that takes after an
	// outage is up to the API server.
	window := max(incident[len(incident)-1].after+2*time.Second, story.startAPI)
	machines := make([]*node, nodes)
	failed := make([]error, nodes)
	for i := range machines {
		machines[i] = &node{client: s.Client(), url: s.URL() + "/config/master"}
		window := window
		all.Go(func() {
			if i < latecomers {
				<-served
				window = time.Second
			}
			time.Sleep(rand.N(window))
			failed[i] = machines[i].boot(ctx)
			machines[i].client.CloseIdleConnections()
		})
	}
	all.Wait()
	report(t, machines, failed, story, main)
}

// render is the controller: it renders each generation in its time, has the pool name it, and deletes the one before the
// moment the next exists. It tries again while the API server is away.
func render(ctx context.Context, t *testing.T, c *kube.Cluster, begun time.Time, collected bool) {
	insist := func(what string, do func() error) {
		for {
			err := do()
			if err == nil {
				return
			}
			if ctx.Err() != nil {
				t.Errorf("%s: %v", what, err)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	for i, g := range incident {
		time.Sleep(time.Until(begun.Add(g.after)))
		config := kube.Rendered(g.name, g.name+" from "+strings.Join(g.sources, "+")+" ", 20_000)
		if collected {
			config["metadata"].(map[string]any)["ownerReferences"] = []any{owner(ctx, t, c, i)}
		}
		insist("render", func() error { _, err := c.TryApply(ctx, kube.Configs, "", config); return err })
		if i > 0 {
			doomed := incident[i-1].name
			if collected {
				doomed = ownerName(i - 1)
			}
			insist("delete", func() error { return c.TryDelete(ctx, kube.Configs, doomed) })
		}
		insist("name", func() error {
			_, err := c.TryApply(ctx, kube.Pools, "", kube.Pool("master", g.name, g.name, 0))
			return err
		})
	}
	if collected {
		for _, g := range incident[:len(incident)-1] {
			c.Eventually("collected", func() error { return c.Gone(ctx, kube.Configs, g.name) })
		}
	}
}

func ownerName(i int) string { return fmt.Sprintf("owner-of-generation-%d", i) }

// owner makes the object that a generation belongs to.
func owner(ctx context.Context, t *testing.T, c *kube.Cluster, i int) map[string]any {
	made, err := c.TryApply(ctx, kube.Configs, "", kube.Rendered(ownerName(i), "owner", 10))
	if err != nil {
		t.Error(err)
		return nil
	}
	return map[string]any{"apiVersion": made.GetAPIVersion(), "kind": made.GetKind(), "name": made.GetName(), "uid": string(made.GetUID())}
}

// report counts. A body that the kill itself cut short is counted apart: no server can prevent that one.
func report(t *testing.T, machines []*node, failed []error, story story, main bool) {
	fallbacks, retries, failures, cut := 0, 0, 0, 0
	got := map[string]int{}
	for i, n := range machines {
		retries += n.retries
		if n.fallback {
			fallbacks++
		}
		switch {
		case failed[i] == nil:
			got[n.rendered]++
		case n.cut && story.killServer > 0:
			cut++
		default:
			failures++
			t.Errorf("node %d: %v", i, failed[i])
		}
	}
	known := map[string]bool{}
	for _, g := range incident {
		known[g.name] = true
	}
	for name := range got {
		if !known[name] {
			t.Errorf("%s was never rendered", name)
		}
	}
	line := fmt.Sprintf("replay: nodes=%d generations=%d fallbacks=%d retries=%d failures=%d", len(machines), len(incident), fallbacks, retries, failures)
	detail := ""
	for _, g := range incident {
		detail += fmt.Sprintf(" %d", got[g.name])
	}
	if got[incident[len(incident)-1].name] == 0 {
		t.Error("no machine booted into the last generation")
	}
	t.Logf("%s (per generation:%s; cut by the kill: %d)", line, detail, cut)
	if path := os.Getenv("REPLAY_LINE"); main && path != "" {
		if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// settled waits until a machine that boots now gets the last generation.
func settled(ctx context.Context, t *testing.T, s *server.Test) {
	last := incident[len(incident)-1].name
	for ctx.Err() == nil {
		n := &node{client: s.Client(), url: s.URL() + "/config/master"}
		err := n.boot(ctx)
		n.client.CloseIdleConnections()
		if err == nil && n.rendered == last && !n.fallback {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the last generation is not served")
}

// Field case 3 (openshift/machine-config-operator#2635): the pool's status names a config that was deleted, and the server
// restarts: still 200, same digest, same bytes. Field case 4: the same once the controller renders it again.
func TestDeletedWhileNamed(t *testing.T) {
	c := kube.Start(t, kube.Options{})
	s := newServer(t, c, c.Kubeconfig(c.Admin))
	a, b := "rendered-worker-"+strings.Repeat("a", 32), "rendered-worker-"+strings.Repeat("b", 32)
	for _, name := range []string{a, b} {
		c.Apply(kube.Configs, "", kube.Rendered(name, name+" ", 20_000))
	}
	c.Apply(kube.Pools, "", kube.Pool("worker", b, a, 0))
	s.Up()
	s.Ready()
	boot := func() *node {
		n := &node{client: s.Client(), url: s.URL() + "/config/worker"}
		defer n.client.CloseIdleConnections()
		if err := n.boot(t.Context()); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := boot()
	if before.rendered != a {
		t.Fatalf("%s is served, want the status's", before.rendered)
	}
	c.Delete(kube.Configs, a)
	same := func(when string) {
		now := boot()
		if now.digest != before.digest || !bytes.Equal(now.body, before.body) || now.fallback {
			t.Errorf("%s: %s instead of %s, same bytes %v, fallback %v", when, now.digest, before.digest, bytes.Equal(now.body, before.body), now.fallback)
		}
	}
	same("deleted")
	s.Kill()
	s.Up()
	s.Ready()
	same("deleted and restarted")
	c.StopAPI()
	s.Kill()
	begun := time.Now()
	s.Up()
	same("restarted without the API server") // field case 106
	t.Logf("a server that restarts without the API server serves after %v", time.Since(begun).Round(time.Millisecond))
	c.StartAPI()
	c.Apply(kube.Configs, "", kube.Rendered(a, a+" ", 20_000))
	same("rendered again")
}
