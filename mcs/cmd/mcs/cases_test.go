// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/server"
	"github.com/mcsnap/mcsnap/snapshot"
)

const workerConfig = "rendered-worker-0123456789abcdef0123456789abcdef"

// with asks for a path with a bearer token, "" for none.
func with(t *testing.T, s *server.Test, client *http.Client, path, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	reply, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(body)
}

// Field case 83: who does not come by the way of provisioning learns names, digests, sizes and times at most. The bytes of
// a config or a snapshot need what a new machine has, and the store's commands print none unless told to.
func TestBytesNeedAuthority(t *testing.T) {
	const canary, token = "CANARY0123456789", "a-token-of-provisioning"
	dir := copyFolder(t)
	config := filepath.Join(dir, "machine-configs", workerConfig+".yaml")
	edit(t, config, config, "hello%20worker", canary)
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := server.Start(t, "bootstrap", "--dir", dir, "--no-credentials", "--dev-tls", "--agent", "none", "--token-file", tokens, "--unauthenticated", "reject")
	served(s)
	client := s.Client()
	defer client.CloseIdleConnections()

	status, body := with(t, s, client, s.URL()+"/config/worker", token)
	sealed, err := snapshot.Extract([]byte(body))
	if status != http.StatusOK || err != nil || !strings.Contains(string(sealed.Bytes()), canary) {
		t.Fatalf("with a token: %d, %v", status, err)
	}
	stored := "/snapshot/" + sealed.Digest().PathForm()
	if status, body := with(t, s, client, s.URL()+stored, token); status != http.StatusOK || !strings.Contains(body, canary) {
		t.Fatalf("the snapshot, with a token: %d", status)
	}
	for _, path := range []string{"/config/worker", "/config/worker.gz", stored} {
		if status, body := with(t, s, client, s.URL()+path, ""); status != http.StatusUnauthorized || strings.Contains(body, canary) {
			t.Errorf("%s without a token: %d %s", path, status, body)
		}
	}
	for _, path := range []string{s.URL() + "/", s.URL() + "/config/", s.URL() + "/snapshot/", s.URL() + "/readyz?verbose", s.URL() + "/healthz", s.Metrics()} {
		if _, body := with(t, s, client, path, ""); strings.Contains(body, canary) || strings.Contains(body, sealed.Digest().Hex()) {
			t.Errorf("%s tells a secret or a digest: %s", path, body)
		}
	}
	for _, command := range [][]string{{"ls"}, {"ls", "-o", "json"}, {"show", workerConfig}, {"show", workerConfig, "-o", "json"}, {"verify"}, {"verify", "-o", "json"}} {
		out, stderr, code := server.Execute(t, append(append([]string{"store"}, command...), "--state-dir", s.State)...)
		if code != 0 || strings.Contains(out+stderr, canary) {
			t.Errorf("mcs store %q ends with %d and tells\n%s%s", command, code, out, stderr)
		}
	}
	if out, _, _ := server.Execute(t, "store", "show", workerConfig, "--contents", "--state-dir", s.State); !strings.Contains(out, canary) {
		t.Error("the canary is not in the store: the test shows nothing")
	}
}

// Field case 71: a config that etcd would not take (its limit is 1.5 MiB) is served from a folder, snapshot and all,
// because the snapshot never goes through the API.
func TestLargeConfig(t *testing.T) {
	t.Parallel()
	const size = 5 << 20
	dir := copyFolder(t)
	config := filepath.Join(dir, "machine-configs", workerConfig+".yaml")
	noise := make([]byte, size)
	letters := rand.New(rand.NewPCG(1, 2))
	for i := range noise { // text that gzip cannot make much of
		noise[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[letters.IntN(64)]
	}
	edit(t, config, config, "hello%20worker", string(noise))
	s := server.Start(t, "bootstrap", "--dir", dir, "--no-credentials", "--dev-tls", "--agent", "none", "--pools", "worker")
	s.Ready()
	client := s.Client()
	defer client.CloseIdleConnections()
	status, body := with(t, s, client, s.URL()+"/config/worker", "")
	if status != http.StatusOK {
		t.Fatalf("%d %.300s", status, body)
	}
	sealed, err := snapshot.Extract([]byte(body))
	if err != nil || len(sealed.MachineConfig()) < size || !strings.Contains(string(sealed.MachineConfig()), string(noise)) {
		t.Fatalf("the snapshot inside: %v", err)
	}
	if out, _, code := server.Execute(t, "store", "verify", "--state-dir", s.State); code != 0 {
		t.Errorf("verify: %d %s", code, out)
	}
	t.Logf("a config of %d bytes is a body of %d", len(sealed.MachineConfig()), len(body))
}
