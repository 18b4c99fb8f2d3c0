// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"sync"

	"github.com/mcsnap/mcsnap/snapshot/wording"
)

const kindNodes = "nodes"

// joined knows the addresses of the nodes that there are.
type joined struct {
	mu        sync.RWMutex
	addresses map[string][]netip.Addr // by node
	holders   map[netip.Addr]int      // how many nodes have an address
}

// set takes up a node's addresses, none when the node is gone.
func (j *joined) set(node string, addresses []netip.Addr) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if slices.Equal(j.addresses[node], addresses) { // nearly always: a node reports its state every few minutes
		return
	}
	if j.addresses == nil {
		j.addresses, j.holders = map[string][]netip.Addr{}, map[netip.Addr]int{}
	}
	for _, a := range j.addresses[node] {
		if j.holders[a]--; j.holders[a] <= 0 {
			delete(j.holders, a)
		}
	}
	delete(j.addresses, node)
	for _, a := range addresses {
		j.holders[a]++
	}
	if len(addresses) > 0 {
		j.addresses[node] = addresses
	}
}

// names returns the nodes that are known.
func (j *joined) names() (names []string) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	for name := range j.addresses {
		names = append(names, name)
	}
	return names
}

// Joined reports whether an address is one of a Node object of the cluster. It is false for all while Config.Nodes is
// off, and as long as the API server has not been reached since the start.
func (s *Source) Joined(a netip.Addr) bool {
	s.joined.mu.RLock()
	defer s.joined.mu.RUnlock()
	return s.joined.holders[a] > 0
}

// nodeFollower keeps the addresses of nodes.
type nodeFollower struct{ s *Source }

func (f nodeFollower) observe(_ context.Context, m meta, raw json.RawMessage) {
	var n struct {
		Status struct {
			Addresses []struct {
				Address string `json:"address"`
			} `json:"addresses"`
		} `json:"status"`
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		f.s.log.Error("a Node cannot be read; its addresses stay what they were", "node", m.Metadata.Name, "error", wording.Error(err))
		return
	}
	var addresses []netip.Addr
	for _, told := range n.Status.Addresses { // names among them are none
		if a, err := netip.ParseAddr(told.Address); err == nil {
			addresses = append(addresses, a.WithZone("").Unmap())
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	f.s.joined.set(m.Metadata.Name, slices.Compact(addresses))
}

func (f nodeFollower) gone(_ context.Context, m meta, _ json.RawMessage) {
	f.s.joined.set(m.Metadata.Name, nil)
}

func (f nodeFollower) complete(names map[string]bool) {
	for _, name := range f.s.joined.names() {
		if !names[name] {
			f.s.joined.set(name, nil)
		}
	}
	f.s.completed(kindNodes)
}
