// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Old is an Ignition of the past, each the newest that reads a spec version and nothing above it. A config that the
// current one takes may still be beyond them.
type Old struct {
	part     string
	platform string // its flag for where the config comes from
	stages   []string

	// Accounts tells whether it can apply a passwd section to a scratch root. The oldest run programs of the root itself.
	Accounts bool
}

var (
	Ignition035 = Old{part: "ignition035", platform: "-oem=file", stages: []string{"disks", "files"}}                                                  // spec 2.2 (and 2.4)
	Ignition221 = Old{part: "ignition221", platform: "-platform=file", stages: []string{"fetch", "disks", "mount", "files", "umount"}}                 // spec 3.0
	Ignition260 = Old{part: "ignition260", platform: "-platform=file", stages: []string{"fetch", "disks", "mount", "files", "umount"}, Accounts: true} // spec 3.1
)

// Apply applies a config to a root folder, and fails the test when Ignition does.
func (o Old) Apply(t testing.TB, config []byte, root string) (log string) {
	t.Helper()
	program := must(t)(Find(o.part, "ignition"))
	root, err := prepareRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	file := filepath.Join(work, "user-data.ign")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), BootTimeout)
	defer cancel()
	for _, stage := range o.stages {
		cmd := exec.CommandContext(ctx, program, o.platform, "-stage="+stage, "-root="+root, "-log-to-stdout",
			"-config-cache="+filepath.Join(work, "ignition.json"))
		cmd.Env = append(os.Environ(), "IGNITION_CONFIG_FILE="+file)
		out, err := runGroup(cmd)
		log += fmt.Sprintf("--- stage %s\n%s", stage, out)
		if err := errors.Join(err, ctx.Err()); err != nil {
			t.Fatalf("%s, stage %s: %s\n%s", o.part, stage, reason(out, err), log)
		}
	}
	return log
}
