// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is how long kubectl may take. It takes half a second; this is for machines that are busy with something else.
const patience = 2 * time.Minute

// Collect starts the real garbage collector.
func (c *Cluster) Collect() {
	c.t.Helper()
	c.Control()
}

// Control starts the real controller manager, with the garbage collector and the controllers of the given names. A cluster
// has one: call it once. It outlives outages of the API server.
func (c *Cluster) Control(controllers ...string) {
	c.t.Helper()
	k := c.Kubeconfig(c.Admin)
	c.spawn("kube-controller-manager", "--kubeconfig="+k, "--authentication-kubeconfig="+k, "--authorization-kubeconfig="+k,
		"--controllers="+strings.Join(append([]string{"garbage-collector-controller"}, controllers...), ","),
		"--service-account-private-key-file="+filepath.Join(c.dir, "sa.key"), "--root-ca-file="+filepath.Join(c.dir, "certs", "apiserver.crt"),
		"--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=false")
}

// Kubectl runs kubectl as the administrator and returns what it prints. The test fails when kubectl does.
func (c *Cluster) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	return c.KubectlInput(t, "", args...)
}

// KubectlInput is Kubectl with something to read, for `kubectl create -f -`.
func (c *Cluster) KubectlInput(t testing.TB, input string, args ...string) string {
	t.Helper()
	out, err := c.kubectl(t, input, args)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TryKubectl is Kubectl for what may fail: the error has what kubectl complained of.
func (c *Cluster) TryKubectl(t testing.TB, args ...string) (string, error) {
	t.Helper()
	return c.kubectl(t, "", args)
}

// TryKubectlInput is TryKubectl with something to read.
func (c *Cluster) TryKubectlInput(t testing.TB, input string, args ...string) (string, error) {
	t.Helper()
	return c.kubectl(t, input, args)
}

func (c *Cluster) kubectl(t testing.TB, input string, args []string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	own := []string{"--kubeconfig=" + c.Kubeconfig(c.Admin), "--cache-dir=" + filepath.Join(c.dir, "kubectl")}
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "kubectl"), append(own, args...)...)
	var out, complaints bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &complaints
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(complaints.Bytes()))
	}
	return out.String(), nil
}
