// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package story

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/witness"
	"github.com/mcsnap/mcsnap/snapshot"
)

// A disk returns one wrong bit in the snapshot before the first boot has run. The pool has moved on meanwhile, so the
// snapshot can only come back by its digest; the node is what it was rendered to be, and tells that it had to ask.
func TestBadSnapshotComesBackByDigest(t *testing.T) {
	s := raise(t, "The bad snapshot comes back by its digest")
	n := s.newNode("flipped")
	s.renders(2)
	s.deletes(1)
	s.flips(n)

	s.boots(n)

	s.isGeneration(n, 1, "fetched")
	s.says(n, "the snapshot is damaged or missing", "the snapshot was fetched again and put back")
}

// The same wrong bit, and no server to ask. The unit fails in words that name the file, the digest and the server;
// nothing is handed over, so the node is not half of anything; and the kubelet was not kept from starting. When the
// server is back, the next boot mends the node without anybody's help.
func TestBadSnapshotWithoutServerIsToldAndMended(t *testing.T) {
	s := raise(t, "The bad snapshot and no server: told, and mended at the next boot")
	n := s.newNode("alone")
	s.flips(n)
	s.serverStops()
	// The story shortens the agent's patience, and nothing else.
	dropin := n.Path("/etc/systemd/system/" + unit + ".d/patience.conf")
	s.must(os.MkdirAll(filepath.Dir(dropin), 0o755))
	s.must(os.WriteFile(dropin, []byte("[Service]\nExecStart=\nExecStart=/usr/local/bin/mcsnap-agent firstboot --fetch-deadline=2s\n"), 0o644))

	s.boots(n)

	state, err := n.Unit(t.Context(), unit)
	s.must(err)
	if state.ActiveState != "failed" || state.ExitCode != 5 && state.ExitCode != 6 {
		t.Errorf("the unit is %+v; want it failed with 5 (network) or 6 (verification)", state)
	}
	born, err := snapshot.Seal(s.generation(1).MachineConfig, "worker")
	s.must(err)
	s.says(n, snapshot.Path, string(born.Digest()), s.server.URL())
	s.absent(n, witness.CurrentConfig)
	kubelet, err := n.Unit(t.Context(), "kubelet-dependencies.target")
	s.must(err)
	if kubelet.ActiveState != "active" {
		t.Errorf("kubelet-dependencies.target is %s: the failed hand-over held the node back", kubelet.ActiveState)
	}
	s.must(n.PowerOff(t.Context()))

	s.serverStarts()
	s.boots(n)

	s.isGeneration(n, 1, "fetched")
}
