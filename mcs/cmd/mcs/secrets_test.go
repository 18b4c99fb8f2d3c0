// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/server"
)

// Secrets of the folder, the kubeconfig, the tokens and the keys never reach the log, the metrics or a refusal, whatever
// is broken and however much is logged.
func TestSecretsStayIn(t *testing.T) {
	const canary = "CANARY0123456789"
	kubeconfig := strings.ReplaceAll(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://api-int:6443"}}]
users: [{name: u, user: {token: CANARY}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, "CANARY", canary)
	for _, format := range []string{"text", "json"} {
		dir, secrets := copyFolder(t), t.TempDir()
		config := filepath.Join(dir, "machine-configs/rendered-worker-0123456789abcdef0123456789abcdef.yaml")
		write := func(path, text string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		rendered, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		write(config, strings.ReplaceAll(string(rendered), "hello%20worker", canary))
		kube, tokens := filepath.Join(secrets, "kubeconfig"), filepath.Join(secrets, "tokens")
		write(kube, kubeconfig)
		write(tokens, canary+"-token\n")
		s := server.Start(t, "bootstrap", "--dir", dir, "--kubeconfig", kube, "--token-file", tokens, "--dev-tls", "--agent", "none",
			"--log-level", "debug", "--log-format", format, "--metrics-listen", "127.0.0.1:0")
		served(s)
		client := s.Client()
		told := ""
		ask := func() {
			for _, path := range []string{"/config/worker", "/config/worker.gz", "/config/waiting", "/config/x?token=" + canary, "/readyz?verbose", "/snapshot/" + canary} {
				for _, token := range []string{canary + "-token", canary + "-other"} {
					request, err := http.NewRequest(http.MethodGet, s.URL()+path, nil)
					if err != nil {
						t.Fatal(err)
					}
					request.Header.Set("Authorization", "Bearer "+token)
					request.Header.Set("Cookie", canary)
					reply, err := client.Do(request)
					if err != nil {
						t.Fatal(err)
					}
					body, _ := io.ReadAll(reply.Body)
					_ = reply.Body.Close()
					if reply.StatusCode != http.StatusOK {
						told += string(body)
					} else if path == "/config/worker" && !strings.Contains(string(body), canary) {
						t.Error("the config does not hold the canary: the test shows nothing")
					}
				}
			}
		}
		ask()
		write(tokens, canary[:4]+"\n")
		write(kube, kubeconfig[:len(kubeconfig)/2]+canary+": [")
		write(config, string(rendered)[:300]+canary+": {")
		s.Says("rendered-worker-0123456789abcdef0123456789abcdef.yaml")
		s.Says("stay good")
		ask()
		reply, err := http.Get(s.Metrics())
		if err != nil {
			t.Fatal(err)
		}
		metrics, _ := io.ReadAll(reply.Body)
		_ = reply.Body.Close()
		for where, text := range map[string]string{"the log": s.Output(), "the metrics": string(metrics), "refusals": told} {
			if i := strings.Index(text, canary); i >= 0 {
				t.Errorf("%s, %s: …%s…", format, where, text[max(0, i-200):min(len(text), i+100)])
			}
		}
		if told == "" || !strings.Contains(s.Output(), "DEBUG") && s.Output() == "" {
			t.Error("nothing was told: the test shows nothing")
		}
		_ = filepath.WalkDir(s.State, func(path string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				if info, err := entry.Info(); err == nil {
					text, _ := os.ReadFile(path)
					if strings.Contains(string(text), canary) && info.Mode().Perm()&0o077 != 0 {
						t.Errorf("%s holds a secret and has mode %v", path, info.Mode())
					}
				}
			}
			return nil
		})
	}
}
