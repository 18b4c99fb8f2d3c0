// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package story tells what happens to machines, on machines that boot for real: one file for each story, to be read
// from top to bottom. What each story needs (a cluster, its server, nodes) is here.
package story

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/mcsnap/mcsnap/e2e/example"
	"github.com/mcsnap/mcsnap/e2e/node"
	"github.com/mcsnap/mcsnap/e2e/server"
	"github.com/mcsnap/mcsnap/e2e/witness"
	"github.com/mcsnap/mcsnap/snapshot"
)

const unit = "mcsnap-firstboot.service"

var (
	lan        *node.Lan
	everything = labels.Everything()
)

func TestMain(m *testing.M) {
	var err error
	if lan, err = node.NewLan(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "story:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := writeReport(os.Getenv("MCSNAP_REPORT")); err != nil {
		fmt.Fprintln(os.Stderr, "story:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// stage is one story's cluster, with a server that nodes can reach.
type stage struct {
	*testing.T
	*record
	cluster witness.Cluster
	server  *server.Server
}

// raise begins a story: the cluster is at generation 1, and the server serves it. The title is for the report.
func raise(t *testing.T, title string) *stage {
	t.Helper()
	dir := t.TempDir()
	s := &stage{T: t, record: newRecord(title), cluster: witness.Cluster{Folder: filepath.Join(dir, "cluster")}}
	args, err := server.Bootstrap(s.cluster.Folder)
	s.must(err)
	s.server = &server.Server{
		Args: args, State: filepath.Join(dir, "state"), Log: filepath.Join(dir, "mcs.log"),
		Host: node.Gateway, Port: 22623,
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server said last:\n%s", s.server.LastWords())
		}
		s.must(s.server.Stop())
		s.story.End()
	})
	files, err := example.Cluster()
	s.must(err)
	s.must(example.Write(s.cluster.Folder, files))
	s.rendered(1)
	s.serverStarts()
	s.must(s.server.Serves(t.Context(), example.Pool, s.generation(1).Name))
	return s
}

func (s *stage) serverStarts() {
	s.Helper()
	s.must(s.server.Start(s.Context()))
	s.must(s.server.Ready(s.Context()))
	s.served()
}

func (s *stage) serverStops() {
	s.Helper()
	s.must(s.server.Stop())
	s.away()
}

func (s *stage) serverDies() {
	s.Helper()
	s.must(s.server.Kill())
	s.away()
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) generation(n int) example.Generation {
	s.Helper()
	g, err := example.Render(n)
	s.must(err)
	return g
}

// renders makes the cluster render a generation, name it in the pool and serve it.
func (s *stage) renders(n int) {
	s.Helper()
	g := s.generation(n)
	s.must(example.Write(s.cluster.Folder, map[string][]byte{g.ConfigFile(): g.MachineConfig, g.PoolFile(): g.PoolObject}))
	s.rendered(n)
	s.must(s.server.Serves(s.Context(), example.Pool, g.Name))
}

// deletes makes the cluster forget a generation.
func (s *stage) deletes(n int) {
	s.Helper()
	s.must(os.Remove(filepath.Join(s.cluster.Folder, s.generation(n).ConfigFile())))
	s.deleted(n)
}

// newNode is a machine whose initramfs has just run: everything is on its disk, and nothing of it has run yet.
func (s *stage) newNode(name string) *node.Node {
	s.Helper()
	n, err := lan.New(s.Context(), name)
	s.must(err)
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("%s's console:\n%s", n.Name, n.Console())
		}
		s.must(n.Remove())
	})
	stub, err := s.server.Stub(s.Context(), example.Pool)
	s.must(err)
	done := s.ignites(n)
	booted, err := n.Ignite(s.Context(), stub, 2*time.Minute)
	done(booted)
	s.must(err)
	return n
}

// boots switches a machine on and waits until it has started whatever it starts.
func (s *stage) boots(n *node.Node) {
	s.Helper()
	s.must(s.tryBoot(n))
}

// tryBoot is boots for machines that boot beside each other.
func (s *stage) tryBoot(n *node.Node) error {
	done := s.startsUp(n)
	defer done()
	if err := n.Start(s.Context()); err != nil {
		return err
	}
	_, err := n.Settle(s.Context())
	return err
}

// flips makes one bit of the machine's snapshot wrong.
func (s *stage) flips(n *node.Node) {
	s.Helper()
	s.must(witness.Flip(n.Root(), snapshot.Path))
	s.fault(n, "a bit of the snapshot flips")
}

// loses cuts the machine's power.
func (s *stage) loses(n *node.Node) {
	s.Helper()
	s.must(n.CutPower())
	s.fault(n, "power is cut")
}

// isGeneration checks that the machine's daemon would find exactly that generation, and that the agent's unit says so.
func (s *stage) isGeneration(n *node.Node, number int, source string) {
	s.Helper()
	state, err := n.Unit(s.Context(), unit)
	s.must(err)
	if state.ActiveState != "active" || state.Result != "success" {
		said, err := n.Journal(s.Context(), unit)
		s.Fatalf("%s on %s is %+v:\n%s%v", unit, n.Name, state, said, err)
	}
	rendered, err := snapshot.Seal(s.generation(number).MachineConfig, example.Pool)
	s.must(err)
	s.must(witness.HandedOver(n.Root(), rendered, s.cluster))
	if got, err := witness.Source(n.Root()); err != nil || got != source {
		s.Fatalf("%s's snapshot is %q, %v; want %q", n.Name, got, err, source)
	}
}

// says checks that the agent's unit wrote all of these words.
func (s *stage) says(n *node.Node, words ...string) {
	s.Helper()
	said, err := n.Journal(s.Context(), unit)
	s.must(err)
	for _, word := range words {
		if !strings.Contains(said, word) {
			s.Errorf("%s's agent does not say %q; it says:\n%s", n.Name, word, said)
		}
	}
}

// absent checks that a file is not on the machine.
func (s *stage) absent(n *node.Node, path string) {
	s.Helper()
	if _, err := os.Lstat(n.Path(path)); !errors.Is(err, os.ErrNotExist) {
		s.Errorf("%s has %s (%v)", n.Name, path, err)
	}
}
