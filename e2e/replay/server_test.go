// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/kube"
	"github.com/mcsnap/mcsnap/e2e/server"
)

func TestMain(m *testing.M) { server.Main(m) }

// newServer prepares a server on a cluster, with credentials for nodes in the folder tokens beside its state.
func newServer(t testing.TB, c *kube.Cluster, kubeconfig string, more ...string) *server.Test {
	t.Helper()
	s := server.New(t)
	tokens := tokensOf(s)
	if err := os.Mkdir(tokens, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"token": "bootstrapper-token", "ca.crt": "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"} {
		if err := os.WriteFile(filepath.Join(tokens, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.Args = append([]string{
		"serve", "--kubeconfig", kubeconfig, "--node-token-dir", tokens, "--dev-tls", "--external-url", server.URL, "--agent", "none",
	}, more...)
	c.Apply(kube.Controllers, "", kube.Controller("https://api-int.example.com:6443", []byte("KUBELET CA\n"), nil))
	return s
}

func tokensOf(s *server.Test) string { return filepath.Join(filepath.Dir(s.State), "tokens") }
