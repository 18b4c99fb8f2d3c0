// SPDX-License-Identifier: Apache-2.0

// Package node makes machines that boot for real, about a second each: a Debian root of their own, their own network,
// the real Ignition for the first boot's initramfs, and the real systemd as PID 1. What a machine does not have is a
// kernel, a boot loader and a disk of its own; see docs/testing.md. Everything happens inside namespaces that end with
// the test, so nothing is left behind however it ends.
package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcsnap/mcsnap/e2e/lab"
)

// Gateway is the address at which nodes reach the test itself, and the servers it starts.
const Gateway = "10.78.0.1"

// inside is set by the script of that name: the control groups that this program runs in, and proof that its
// namespaces are its own.
const inside = "MCSNAP_INSIDE"

// Lan is one network with the test at Gateway and a number of nodes.
type Lan struct {
	base string // the Debian root that all nodes share
	work string // the nodes' own layers; in memory, so that a run leaves nothing on the disk
	last int    // of the addresses that were given out
}

// NewLan lays the network. There is one per program that runs inside.
func NewLan(ctx context.Context) (*Lan, error) {
	if os.Getenv(inside) == "" {
		return nil, errors.New("machines need namespaces of their own: run the tests with `make e2e`, or go test -exec $PWD/e2e/node/inside")
	}
	bin, err := lab.Bin("debian")
	if err != nil {
		return nil, err
	}
	l := &Lan{base: filepath.Join(bin, "root"), work: "/run/mcsnap-nodes", last: 1}
	if err := os.MkdirAll(l.work, 0o755); err != nil {
		return nil, fmt.Errorf("make room for nodes: %w", err)
	}
	return l, sequence(ctx,
		"mount -t tmpfs -o mode=0755 tmpfs "+l.work,
		"ip link add lan type bridge",
		"ip address add "+Gateway+"/24 dev lan",
		"ip link set lan up")
}

// New adds a node: a root that was never booted, and a cable to the others.
func (l *Lan) New(ctx context.Context, name string) (*Node, error) {
	l.last++
	n := &Node{
		Name:    name,
		Address: fmt.Sprintf("10.78.0.%d", l.last),
		dir:     filepath.Join(l.work, name),
	}
	for _, layer := range []string{"upper", "work", "root"} {
		if err := os.MkdirAll(filepath.Join(n.dir, layer), 0o755); err != nil {
			return nil, fmt.Errorf("node %s: %w", name, err)
		}
	}
	cable := fmt.Sprintf("cable%d", l.last)
	return n, sequence(ctx,
		fmt.Sprintf("mount -t overlay -o lowerdir=%s,upperdir=%s/upper,workdir=%[2]s/work overlay %[2]s/root", l.base, n.dir),
		"ip netns add "+name,
		"ip link add "+cable+" type veth peer name eth0 netns "+name,
		"ip link set "+cable+" master lan up",
		"ip -netns "+name+" link set lo up",
		"ip -netns "+name+" address add "+n.Address+"/24 dev eth0",
		"ip -netns "+name+" link set eth0 up",
		"ip -netns "+name+" route add default via "+Gateway)
}

// sequence runs commands, without a shell, until one fails.
func sequence(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		words := strings.Fields(line)
		if out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, bytes.TrimSpace(out))
		}
	}
	return nil
}

// until asks every few milliseconds until the answer is yes or the time is over.
func until(ctx context.Context, limit time.Duration, answered func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !answered() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return true
}
