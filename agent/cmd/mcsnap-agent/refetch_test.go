// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/snapshot"
)

// A damaged snapshot comes back over TLS, with the node's CA and token, by digest and past a server that is not ready
// (field cases 90, 91: patience is inside the process, and the proxy's variables are its own).
func TestRefetch(t *testing.T) {
	s := rendered(t)
	var asked atomic.Int32
	var paths atomic.Pointer[string]
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths.Store(&r.URL.Path)
		switch {
		case r.Header.Get("Authorization") != "Bearer secret-token":
			w.WriteHeader(http.StatusUnauthorized)
		case asked.Add(1) == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			_, _ = w.Write(s.Bytes())
		}
	}))
	t.Cleanup(server.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	config := fmt.Sprintf("apiVersion: mcsnap/v1\nservers: [%s]\nauthHeader: Authorization\nca: |\n  %s\n",
		server.URL, strings.ReplaceAll(strings.TrimSpace(ca), "\n", "\n  "))
	damaged := strings.Replace(string(s.Bytes()), "setting", "settinG", 1)
	dir := born(t, s, map[string]string{snapshot.Path: damaged, handoff.ConfigPath: config, handoff.TokenPath: "secret-token\n"})

	got := runAgent(t, []string{"HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1"}, "firstboot", "--root", dir, "--fetch-deadline=20s")
	if got.code != 0 {
		t.Fatalf("exit %d\n%s", got.code, got.stderr)
	}
	if want := "/snapshot/" + s.Digest().PathForm(); *paths.Load() != want {
		t.Errorf("asked for %s, want %s: by digest and never by pool", *paths.Load(), want)
	}
	back, err := os.ReadFile(filepath.Join(dir, snapshot.Path))
	if err != nil || string(back) != string(s.Bytes()) {
		t.Errorf("the snapshot on disk is not what it was: %v", err)
	}
	var record handoff.Record
	text, err := os.ReadFile(filepath.Join(dir, handoff.RecordPath))
	if err != nil || json.Unmarshal(text, &record) != nil || record.Source != handoff.Fetched || record.Attempts != 2 || record.BootID == "" || record.Version != "v0.0.0-test" {
		t.Errorf("the record: %s, %v", text, err)
	}
	if strings.Contains(got.stderr+got.stdout+string(text), "secret-token") {
		t.Error("the token is told")
	}

	// A server that gives another snapshot than was asked for is not believed.
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Replace(string(s.Bytes()), "setting", "settinG", 1)))
	})
	dir = born(t, s, map[string]string{snapshot.Path: damaged, handoff.ConfigPath: config})
	if got := runAgent(t, nil, "firstboot", "--root", dir, "--fetch-deadline=2s"); got.code != 6 || !strings.Contains(got.stderr, "digest mismatch") {
		t.Errorf("exit %d, want 6\n%s", got.code, got.stderr)
	}
	if back, _ := os.ReadFile(filepath.Join(dir, snapshot.Path)); string(back) != damaged {
		t.Error("a failed repair changed the snapshot")
	}
}
