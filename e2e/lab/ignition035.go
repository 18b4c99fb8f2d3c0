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

// ApplyIgnition035 applies a config of spec 2.2 to a root folder with the last Ignition of the 0.x line, and fails the
// test when Ignition does. That Ignition runs programs of the root itself for accounts, which a scratch root lacks: a
// config with a passwd section cannot be applied.
func ApplyIgnition035(t testing.TB, config []byte, root string) (log string) {
	t.Helper()
	program := must(t)(Find("ignition035", "ignition"))
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
	for _, stage := range []string{"disks", "files"} {
		cmd := exec.CommandContext(ctx, program, "-oem=file", "-stage="+stage, "-root="+root, "-log-to-stdout",
			"-config-cache="+filepath.Join(work, "ignition.json"))
		cmd.Env = append(os.Environ(), "IGNITION_CONFIG_FILE="+file)
		out, err := runGroup(cmd)
		log += fmt.Sprintf("--- stage %s\n%s", stage, out)
		if err := errors.Join(err, ctx.Err()); err != nil {
			t.Fatalf("ignition 0.35, stage %s: %s\n%s", stage, reason(out, err), log)
		}
	}
	return log
}
