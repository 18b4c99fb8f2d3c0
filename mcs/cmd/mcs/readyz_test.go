// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/server"
)

// What is wrong from the start is told in the pool's own line, with the file, the field and the remedy: a config that is
// broken is no config that is missing, and no line speaks of Go's types.
func TestReadyzNamesTheFile(t *testing.T) {
	const name = "rendered-worker-0123456789abcdef0123456789abcdef"
	for what, c := range map[string]struct {
		breaks func(t *testing.T, dir string) (args []string)
		want   []string
	}{
		"a field of the wrong type, in a file of another name": {func(t *testing.T, dir string) []string {
			edit(t, filepath.Join(dir, "machine-configs", name+".yaml"), filepath.Join(dir, "machine-configs/w.yaml"), "version: 3.5.0", "version: 3.5.0\n      timeouts: soon")
			return []string{"--no-credentials"}
		}, []string{"machine-configs/w.yaml", "spec.config", "ignition.timeouts is text, want an object", "mend the MachineConfig"}},
		"half a file": {func(t *testing.T, dir string) []string {
			edit(t, filepath.Join(dir, "machine-configs", name+".yaml"), filepath.Join(dir, "machine-configs/w.yaml"), "spec:", "spec: [")
			return []string{"--no-credentials"}
		}, []string{"machine-configs/w.yaml", "names " + name + ", which may be what cannot be read", "rename it into place"}},
		"no kubeconfig": {func(_ *testing.T, dir string) []string {
			return []string{"--kubeconfig", filepath.Join(dir, "kubeconfig")}
		}, []string{"kubeconfig: cannot be read", "make it readable"}},
		"a kubeconfig without a user": {func(t *testing.T, dir string) []string {
			path := filepath.Join(dir, "node.kubeconfig")
			if err := os.WriteFile(path, []byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://a'}}]\ncontexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return []string{"--kubeconfig", path}
		}, []string{"node.kubeconfig: ", "contexts[].context.user"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := copyFolder(t)
			args := c.breaks(t, dir)
			s := server.Start(t, append(append([]string{"bootstrap", "--dir", dir, "--dev-tls", "--agent", "none"}, args...), "--pools", "worker")...)
			client := s.Client()
			defer client.CloseIdleConnections()
			s.Eventually("the pool's line says it", func() error {
				response, err := client.Get(s.URL() + "/readyz?verbose")
				if err != nil {
					return err
				}
				defer response.Body.Close() //nolint:errcheck // only read
				text, err := io.ReadAll(response.Body)
				if err != nil {
					return err
				}
				for line := range strings.Lines(string(text)) {
					if !strings.HasPrefix(line, "[-] pool-worker: ") {
						continue
					}
					for _, no := range []string{"never captured", "Go struct", "cannot unmarshal"} {
						if strings.Contains(line, no) {
							t.Errorf("it says %q: %s", no, line)
						}
					}
					if hasAll(line, c.want) {
						return nil
					}
				}
				return fmt.Errorf("no line of the pool with %q in\n%s", c.want, text)
			})
		})
	}
}

func hasAll(line string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(line, word) {
			return false
		}
	}
	return true
}

// edit moves a file, with one piece of text in it changed.
func edit(t *testing.T, from, to, old, new string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("%s has no %q", from, old)
	}
	if err := os.Remove(from); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(strings.Replace(string(text), old, new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}
