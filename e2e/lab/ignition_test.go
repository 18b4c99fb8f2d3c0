// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A whole first boot: the stub names a TLS server, the config it serves has a file, an account's key and a kernel
// argument, and all of it is on the root afterwards.
func TestBootFetchesAndWrites(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"ignition":{"version":"3.5.0"},
			"kernelArguments":{"shouldExist":["quiet","mitigations=auto"]},
			"passwd":{"users":[{"name":"core","sshAuthorizedKeys":["ssh-ed25519 AAAAtest core"]}]},
			"storage":{"files":[{"path":"/etc/motd","mode":384,"contents":{"source":"data:,hello"}}]},
			"systemd":{"units":[{"name":"a.service","enabled":true,"contents":"[Service]\nExecStart=true\n[Install]\nWantedBy=default.target\n"}]}}`)
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	stub := fmt.Sprintf(`{"ignition":{"version":"3.5.0","config":{"merge":[{"source":%q}]},"timeouts":{"httpTotal":20},
		"security":{"tls":{"certificateAuthorities":[{"source":"data:;base64,%s"}]}}}}`,
		server.URL, base64.StdEncoding.EncodeToString(ca))

	root := filepath.Join(t.TempDir(), "root")
	booted := ApplyIgnition(t, []byte(stub), root)

	for path, want := range map[string]string{
		"etc/motd":                     "hello",
		"etc/systemd/system/a.service": "ExecStart=true",
		"etc/systemd/system-preset/20-ignition.preset": "enable a.service",
		"home/core/.ssh/authorized_keys.d/ignition":    "ssh-ed25519 AAAAtest core",
	} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: got %q, %v; want it to hold %q", path, text, err, want)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "etc/motd")); err != nil || info.Mode() != 0o600 {
		t.Errorf("etc/motd: %v, %v; want mode 0600", info, err)
	}
	if want := []string{"--should-exist", "quiet", "--should-exist", "mitigations=auto"}; !slices.Equal(booted.KernelArgs, want) {
		t.Errorf("kernel arguments: got %q, want %q", booted.KernelArgs, want)
	}
	for _, stage := range Stages {
		if !strings.Contains(booted.Log, "--- stage "+stage) {
			t.Errorf("the log has nothing of stage %s", stage)
		}
	}
}

func TestBootTellsTheFailedStage(t *testing.T) {
	never := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(never.Close)
	for name, c := range map[string]struct {
		config        string
		timeout       time.Duration
		stage, reason string
	}{
		"not Ignition": {config: `{"ignition":{"version":"9.9.9"}}`, stage: "fetch-offline", reason: "unsupported config version"},
		"wrong hash": {
			config: `{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:,b","verification":{"hash":"sha512-` + strings.Repeat("0", 128) + `"}}}]}}`,
			stage:  "files", reason: "hash",
		},
		// Ignition itself would go on for ever.
		"a server that never answers": {
			config:  `{"ignition":{"version":"3.5.0","config":{"replace":{"source":"` + never.URL + `"}}}}`,
			timeout: time.Second, stage: "fetch", reason: "not done after 1s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Boot{Config: []byte(c.config), Root: t.TempDir(), Timeout: c.timeout}.Run(t.Context())
			failed, ok := errors.AsType[*StageError](err)
			if !ok || failed.Stage != c.stage || !strings.Contains(failed.Reason, c.reason) {
				t.Fatalf("got %v; want stage %s to fail with %q", err, c.stage, c.reason)
			}
		})
	}
}

func TestBootRefusesTheRunningRoot(t *testing.T) {
	for _, root := range []string{"", "/", "/etc/.."} {
		if _, err := (Boot{Root: root}).Run(t.Context()); err == nil {
			t.Errorf("root %q was accepted", root)
		}
	}
}

func TestMissingPartNamesItsRemedy(t *testing.T) {
	t.Setenv("MCSNAP_LAB", t.TempDir())
	_, err := Bin("kube")
	if _, ok := errors.AsType[*NotBuiltError](err); !ok || !strings.Contains(err.Error(), "make -C e2e/lab kube") {
		t.Fatalf("got %v; want the command that builds it", err)
	}
}

// The programs run, and each says the version that its module pins.
func TestProgramsSayTheirVersion(t *testing.T) {
	kube := Kube(t)
	for _, part := range []struct {
		program, want string
		asked         []string
	}{
		{Ignition(t), "v2.26.0", []string{"--version"}},
		{filepath.Join(kube, "etcd"), "3.7.3", []string{"--version"}},
		{filepath.Join(kube, "kube-apiserver"), "v1.37.2", []string{"--version"}},
		{filepath.Join(kube, "kube-controller-manager"), "v1.37.2", []string{"--version"}},
		{filepath.Join(kube, "kubectl"), "v1.37.2", []string{"version", "--client"}},
	} {
		out, err := exec.Command(part.program, part.asked...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), part.want) {
			t.Errorf("%s %v: %q, %v; want %s", part.program, part.asked, out, err, part.want)
		}
	}
	config := filepath.Join(t.TempDir(), "config.ign")
	if err := os.WriteFile(config, []byte(`{"ignition":{"version":"3.5.0"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(IgnitionValidate(t), config).CombinedOutput(); err != nil {
		t.Errorf("ignition-validate refused a valid config: %s, %v", out, err)
	}
}
