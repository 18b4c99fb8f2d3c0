// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/server"
)

// One process writes to a state folder; who comes second is told by whom it is in use, and those who only read are let in.
func TestOneWriter(t *testing.T) {
	args := []string{"bootstrap", "--dir", "testdata/folder", "--no-credentials", "--dev-tls", "--agent", "none"}
	s := server.Start(t, args...)
	pid := fmt.Sprintf("in use by process %d;", s.Process().Pid)
	second := append(args, "--state-dir", s.State, "--listen", "127.0.0.1:0", "--metrics-listen", "")
	removing := []string{"store", "prune", "--yes", "--kubeconfig", "/nowhere", "--state-dir", s.State}
	for _, writer := range [][]string{second, removing} {
		_, stderr, code := server.Execute(t, writer...)
		if code != 4 || !strings.Contains(stderr, s.State) || !strings.Contains(stderr, pid) {
			t.Errorf("mcs %s ends with %d: %s", writer[0], code, stderr)
		}
	}
	for _, reader := range []string{"ls", "verify"} {
		if _, stderr, code := server.Execute(t, "store", reader, "--state-dir", s.State); code != 0 {
			t.Errorf("mcs store %s ends with %d: %s", reader, code, stderr)
		}
	}
	// However the first ends, the folder is free: this server takes it again.
	s.Kill()
	s.Up()
	s.Down()
	s.Up()
}
