// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/server"
)

// Each way to start wrong ends in one line that names the flag or file and the remedy, with its own exit code.
func TestRefusals(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Close() })
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := []string{"bootstrap", "--dir", "testdata/folder", "--no-credentials", "--dev-tls", "--agent", "none", "--metrics-listen", "", "--listen", "127.0.0.1:0"}
	with := func(more ...string) []string { return append(append([]string{}, good...), more...) }
	// As in a pod that may ask nothing: whatever is asked of an API server would fail in another way.
	cluster := func(more ...string) []string {
		return append([]string{"serve", "--dev-tls", "--agent", "none", "--metrics-listen", "", "--listen", "127.0.0.1:0"}, more...)
	}
	garbage := file("garbage", "not PEM, not ELF")

	for _, c := range []refusal{
		{"an unknown command", []string{"boostrap"}, 2, "bootstrap"},
		{"an unknown flag", with("--colour"), 2, "--colour"},
		{"a stray word", with("worker"), 2, `"worker"`},
		{"no folder", []string{"bootstrap", "--no-credentials"}, 2, "--dir"},
		{"no word on credentials", []string{"bootstrap", "--dir", dir}, 2, "--no-credentials"},
		{"two words on credentials", with("--kubeconfig", garbage), 2, "--no-credentials"},
		{"no certificate", []string{"bootstrap", "--dir", dir, "--no-credentials", "--agent", "none"}, 2, "--dev-tls"},
		{"two certificates", with("--tls-cert", garbage), 2, "--dev-tls"},
		{"no word on agents", []string{"bootstrap", "--dir", dir, "--no-credentials", "--dev-tls"}, 2, "--agent"},
		{"agents without a URL", []string{"bootstrap", "--dir", dir, "--no-credentials", "--dev-tls", "--agent", "amd64=" + garbage}, 2, "--external-url"},
		{"one architecture twice", with("--agent", "amd64=x", "--agent", "amd64=y"), 2, "--agent"},
		{"a URL with a path", with("--external-url", "https://mcs/config"), 2, "--external-url"},
		{"a URL without a scheme", with("--external-url", "mcs:22623"), 2, "--external-url"},
		{"a URL with a password", with("--external-url", "https://u:SECRET@mcs:22623"), 2, "--external-url"},
		{"a bound below zero", with("--max-in-flight", "-1"), 2, "--max-in-flight"},
		{"a time below zero", with("--drain-timeout", "-1s"), 2, "--drain-timeout"},
		{"an old TLS", with("--tls-min-version", "1.1"), 2, "1.2 or 1.3"},
		{"an unknown suite", with("--tls-cipher-suites", "RC4"), 2, "RC4"},
		{"a range that is none", with("--allow-cidr", "10.0.0.0"), 2, "--allow-cidr"},
		{"a word of no policy", with("--unknown-pool", "maybe"), 2, "--unknown-pool"},
		{"an unknown version", with("--default-spec", "1.0.0"), 2, "--default-spec"},
		{"an unknown log format", with("--log-format", "xml"), 2, "--log-format"},
		{"an address that is none", with("--listen", "22623"), 2, "22623"},
		{"an empty state folder", with("--state-dir", ""), 2, "--state-dir"},
		{"a pool of no name", with("--pools", "worker,Wörk"), 2, "--pools"},
		{"a cluster, two words on credentials", cluster("--no-credentials", "--node-token-dir", "/x"), 2, "--node-token-dir"},
		{"a cluster, no folder of credentials", cluster("--node-token-dir", ""), 2, "--node-token-dir"},
		{"a ConfigMap of no namespace", cluster("--kubeconfig-data", "kubeconfig-data"), 2, "NAMESPACE/NAME"},
		{"an impatience", cluster("--api-patience", "-1s"), 2, "--api-patience"},
		{"an API server without a scheme", cluster("--apiserver-url", "api-int:6443"), 2, "--apiserver-url"},
		{"users of no review", cluster("--token-user", "x"), 2, "--token-review"},
		{"a review for nobody", cluster("--token-review", "--token-audience", ""), 2, "--token-audience"},
		{"two kinds of tokens", cluster("--token-review", "--token-file", "/x"), 2, "--token-file"},
		{"a required pool of no name", cluster("--require-pools", "a/b"), 2, "--require-pools"},
		{"a forced pool of no name", cluster("--force-spec", "a b"), 2, "--force-spec"},
		{"a cluster that is not there", cluster("--kubeconfig", "/nowhere/kubeconfig"), 3, "/nowhere/kubeconfig"},
		{"an output of another kind", []string{"store", "ls", "--state-dir", "/nowhere", "-o", "xml"}, 2, "--output"},
		{"fewer than none", []string{"store", "prune", "--state-dir", "/nowhere", "--keep-newest", "-1"}, 2, "--keep-newest"},
		{"a lease in the past", []string{"store", "prune", "--state-dir", "/nowhere", "--keep-served", "-1h"}, 2, "--keep-served"},
		{"no folder to check", []string{"check"}, 2, "--dir"},
		{"a folder that is not there", append([]string{}, replace(good, "testdata/folder", "/nowhere")...), 3, "/nowhere"},
		{"a certificate that is none", append(replace(good, "--dev-tls", "--tls-cert"), "--tls-key", garbage), 3, "matching PEM pair"},
		{"an agent that is none", append(replace(good, "none", "amd64="+garbage), "--external-url", "https://mcs:22623"), 3, garbage},
		{"a token file that is none", with("--token-file", file("tokens", "short")), 3, "line 1"},
		{"a port in use", with("--listen", busy.Addr().String()), 4, busy.Addr().String() + " is in use"},
		{"an address of another machine", with("--listen", "192.0.2.1:22623"), 4, "192.0.2.1"},
		{"a state folder that is a file", append(with(), "--state-dir", garbage), 4, "--state-dir"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := c.args
			if !strings.Contains(strings.Join(args, " "), "--state-dir") && c.code != 2 {
				args = append(args, "--state-dir", t.TempDir())
			}
			_, stderr, code := server.Execute(t, args...)
			said := ""
			for line := range strings.Lines(stderr) {
				if strings.HasPrefix(line, "mcs: ") {
					said += line
				}
			}
			if strings.Contains(stderr, "SECRET") {
				t.Errorf("the password is told: %s", stderr)
			}
			if c.writesNothing() && len(written(t, args)) > 0 {
				t.Errorf("%q: %v was written before the fault was found", args, written(t, args))
			}
			if code != c.code || !strings.Contains(said, c.want) || strings.Count(said, "\n") != 1 {
				t.Errorf("%q: exit code %d, want %d; said %q, want one line with %q", args, code, c.code, said, c.want)
			}
		})
	}
}

// refusal is one way to start wrong.
type refusal struct {
	name string
	args []string
	code int
	want string
}

// writesNothing reports whether the fault can be found before anything is written: all but agents, which are judged
// while they are taken in, and the state folder itself.
func (r refusal) writesNothing() bool {
	return r.code >= 3 && r.name != "an agent that is none" && r.name != "a state folder that is a file"
}

// written lists what lies in the state folder.
func written(t *testing.T, args []string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(args[slices.Index(args, "--state-dir")+1])
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func replace(args []string, old, new string) []string {
	replaced := append([]string{}, args...)
	for i := range replaced {
		if replaced[i] == old {
			replaced[i] = new
			if new == "--tls-cert" {
				replaced[i] = "--tls-cert=/nowhere.crt"
			}
		}
	}
	return replaced
}

func TestHelpTeaches(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"bootstrap", "--help"}, {"check", "--help"}} {
		stdout, _, code := server.Execute(t, args...)
		for _, want := range []string{"Usage:", "Exit codes: 0 done"} {
			if code != 0 || !strings.Contains(stdout, want) {
				t.Errorf("%q: exit code %d, no %q in\n%s", args, code, want, stdout)
			}
		}
	}
	// cobra's own way to ask what a shell would be offered.
	for flag, want := range map[string]string{"--default-spec": "2.2.0", "--unknown-pool": "reject"} {
		if stdout, _, code := server.Execute(t, "__complete", "serve", flag, ""); code != 0 || !hasLine(stdout, want) {
			t.Errorf("%s is completed with %q", flag, stdout)
		}
	}
	if stdout, _, code := server.Execute(t, "completion", "bash"); code != 0 || !strings.Contains(stdout, "mcs") {
		t.Error("no completion for bash")
	}
}

func hasLine(text, want string) bool { return slices.Contains(strings.Split(text, "\n"), want) }

// mcs check says what would be served, and fails on what is wrong.
func TestCheck(t *testing.T) {
	dir := copyFolder(t)
	stdout, stderr, code := server.Execute(t, "check", "--dir", dir)
	if code != 3 || !strings.Contains(stdout, "problem: pool waiting names rendered-waiting-") || !strings.Contains(stderr, "1 problem") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if err := os.Remove(filepath.Join(dir, "machine-pools/waiting.yaml")); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code = server.Execute(t, "check", "--dir", dir, "-o", "json")
	var report struct {
		Pools    []finding
		Problems []string
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 || len(report.Pools) != 3 || len(report.Problems) != 0 {
		t.Errorf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	if kargs := report.Pools[0]; kargs.Pool != "kargs" || kargs.Own != "3.4.0" || kargs.NotServed["3.2.0"] == "" || kargs.Digest == "" {
		t.Errorf("%+v", kargs)
	}
	for _, bad := range []struct{ file, text, want string }{
		{"machine-configs/rendered-worker-0123456789abcdef0123456789abcdef.yaml", "half: [", "rendered-worker-0123456789abcdef0123456789abcdef.yaml"},
		{"machine-pools/worker.yaml", "half: [", "worker.yaml"},
	} {
		dir := copyFolder(t)
		if err := os.WriteFile(filepath.Join(dir, bad.file), []byte(bad.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if stdout, _, code := server.Execute(t, "check", "--dir", dir); code != 3 || !strings.Contains(stdout, bad.want) {
			t.Errorf("%s broken: exit code %d\n%s", bad.file, code, stdout)
		}
	}
}

// What is in the way of something that a server adds is found without a server, and Ignition's warnings are told.
func TestCheckFindsWhatServingWould(t *testing.T) {
	const config = `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: rendered-worker-0123456789abcdef0123456789abcdef
  ownerReferences: [{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, name: worker, uid: ""}]
spec:
  config:
    ignition: {version: 3.4.0}
    storage: {%s}
`
	for _, tt := range []struct {
		storage, want string
		code          int
	}{
		{`directories: [{path: /usr/local/bin/mcsnap-agent}]`, "/usr/local/bin/mcsnap-agent", 3},
		{`links: [{path: /etc/mcsnap/agent.yaml, target: /x}]`, "/etc/mcsnap/agent.yaml", 3},
		{`directories: [{path: /etc/kubernetes/kubeconfig}]`, "/etc/kubernetes/kubeconfig", 3},
		{`links: [{path: /etc/systemd/system/mcsnap-firstboot.service, target: /dev/null}]`, "mcsnap-firstboot.service", 3},
		{`files: [{path: /etc/a, mode: 420, nope: 1}]`, "worker: warning: ", 0},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"machine-configs/worker.yaml": fmt.Sprintf(config, tt.storage),
			"machine-pools/worker.yaml": `{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, metadata: {name: worker},
  status: {configuration: {name: rendered-worker-0123456789abcdef0123456789abcdef}}}`,
		} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if stdout, stderr, code := server.Execute(t, "check", "--dir", dir); code != tt.code || !strings.Contains(stdout, tt.want) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s%s", tt.storage, code, tt.code, tt.want, stdout, stderr)
		}
	}
}
