// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/snapshot"
)

// agent is the program as nodes get it, built once.
var agent string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "mcsnap-agent-")
	if err != nil {
		log.Fatal(err)
	}
	agent = filepath.Join(dir, "mcsnap-agent")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w -X main.version=v0.0.0-test", "-o", agent, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		log.Fatalf("build: %v\n%s", err, out)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// The agent travels with every config: it stays small, and needs nothing of the OS it lands on.
func TestSizeAndLinkage(t *testing.T) {
	const limit = 12 << 20
	info, err := os.Stat(agent)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("bench: mcsnap-agent has %d bytes stripped (limit %d)", info.Size(), limit)
	if info.Size() > limit {
		t.Errorf("mcsnap-agent has %d bytes, the limit is %d: find what pulled in so much", info.Size(), limit)
	}
	dependencies, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, banned := range []string{"k8s.io/client-go", "k8s.io/apimachinery", "github.com/openshift/api"} {
		if strings.Contains(string(dependencies), banned) {
			t.Errorf("the agent imports %s", banned)
		}
	}
	if out, _ := exec.Command("ldd", agent).CombinedOutput(); !strings.Contains(string(out), "not a dynamic executable") {
		t.Errorf("ldd: %s", out)
	}
}

// rendered is a config of the size of OpenShift's own: some 50 files, 163 KB.
func rendered(t testing.TB) *snapshot.Snapshot {
	t.Helper()
	var files, units []string
	for i := range 51 {
		files = append(files, fmt.Sprintf(`{"path":"/etc/example/%03d.conf","mode":420,"overwrite":true,"contents":{"source":"data:,%s"}}`, i, strings.Repeat("setting%20%3D%20value%0A", 110)))
	}
	for i := range 26 {
		units = append(units, fmt.Sprintf(`{"name":"example-%02d.service","enabled":true,"contents":"[Service]\n%s"}`, i, strings.Repeat("# a line of a unit\\n", 60)))
	}
	s, err := snapshot.Seal(fmt.Appendf(nil, `{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","metadata":{"name":"rendered-worker-1"},
		"spec":{"config":{"ignition":{"version":"3.5.0"},"storage":{"files":[%s]},"systemd":{"units":[%s]}},"kernelArguments":["quiet"]}}`,
		strings.Join(files, ","), strings.Join(units, ",")), "worker")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func born(t testing.TB, s *snapshot.Snapshot, changes map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		snapshot.Path: string(s.Bytes()),
		handoff.AnnotationsPath: fmt.Sprintf(`{"machineconfiguration.openshift.io/currentConfig":%q,"mcsnap/birth-snapshot":%q}`,
			s.Name(), s.Digest()),
	}
	for name, content := range changes {
		files[name] = content
	}
	for name, content := range files {
		if content == "" {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

type ran struct {
	code           int
	stdout, stderr string
}

func runAgent(t testing.TB, env []string, args ...string) ran {
	t.Helper()
	cmd := exec.Command(agent, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &stdout, &stderr, append(os.Environ(), env...)
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return ran{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func TestExitCodes(t *testing.T) {
	s := rendered(t)
	damaged := strings.Replace(string(s.Bytes()), "setting", "settinG", 1)
	mixed := `{"machineconfiguration.openshift.io/currentConfig":"rendered-worker-2"}`
	unreachable := "apiVersion: mcsnap/v1\nservers: [https://127.0.0.1:1]\n"
	for name, test := range map[string]struct {
		files map[string]string
		args  []string
		code  int
		says  string
	}{
		"handed over":           {nil, []string{"firstboot"}, 0, "handed over rendered-worker-1"},
		"damaged, no server":    {map[string]string{snapshot.Path: damaged}, []string{"firstboot"}, 6, string(s.Digest())},
		"damaged, unreachable":  {map[string]string{snapshot.Path: damaged, handoff.ConfigPath: unreachable}, []string{"firstboot", "--fetch-deadline=1s"}, 5, "127.0.0.1:1"},
		"mixed":                 {map[string]string{handoff.AnnotationsPath: mixed}, []string{"firstboot"}, 6, "mixed provisioning"},
		"bad annotations":       {map[string]string{handoff.AnnotationsPath: "{"}, []string{"firstboot"}, 3, handoff.AnnotationsPath},
		"unknown flag":          {nil, []string{"firstboot", "--frobnicate"}, 2, "frobnicate"},
		"unknown policy":        {nil, []string{"firstboot", "--on-failure=maybe"}, 2, "use continue or block"},
		"unknown command":       {nil, []string{"frobnicate"}, 2, "frobnicate"},
		"too many arguments":    {nil, []string{"status", "x"}, 2, "x"},
		"unknown output format": {nil, []string{"status", "-o", "xml"}, 2, "xml"},
		"no such root":          {nil, []string{"firstboot", "--root", "/nonexistent/node"}, 4, "/nonexistent/node"},
		"verified":              {nil, []string{"verify"}, 0, "verified, 0 overlays"},
		"not verified":          {map[string]string{snapshot.Path: damaged}, []string{"verify"}, 6, "digest mismatch"},
		"no snapshot":           {map[string]string{snapshot.Path: "{}"}, []string{"verify"}, 3, snapshot.Path},
		"nothing to verify":     {map[string]string{snapshot.Path: ""}, []string{"verify"}, 4, snapshot.Path},
		"doctor":                {map[string]string{handoff.ConfigPath: unreachable}, []string{"doctor", "--offline"}, 0, "to do     hand over"},
		"no such dump":          {nil, []string{"doctor", "--cluster", "/nonexistent/dump"}, 4, "/nonexistent/dump"},
		"show":                  {nil, []string{"show"}, 0, "example-25.service"},
	} {
		t.Run(name, func(t *testing.T) {
			got := runAgent(t, nil, append([]string{"--root", born(t, s, test.files)}, test.args...)...)
			if got.code != test.code || !strings.Contains(got.stdout+got.stderr, test.says) {
				t.Errorf("exit code %d, want %d and %q in\n%s%s", got.code, test.code, test.says, got.stdout, got.stderr)
			}
		})
	}
}

func TestJSONOutput(t *testing.T) {
	dir := born(t, rendered(t), nil)
	for _, args := range [][]string{{"status"}, {"verify"}, {"show"}, {"doctor", "--offline"}} {
		got := runAgent(t, nil, append(args, "--root", dir, "-o", "json")...)
		var value map[string]any
		if err := json.Unmarshal([]byte(got.stdout), &value); err != nil || got.code != 0 {
			t.Errorf("%v: exit %d, %v\n%s%s", args, got.code, err, got.stdout, got.stderr)
		}
	}
}

// What systemd hears: nothing that says READY before the hand-over is done, and a STATUS that names the problem.
func TestNotify(t *testing.T) {
	s := rendered(t)
	for name, test := range map[string]struct {
		files map[string]string
		ready bool
		says  string
	}{
		"handed over": {nil, true, "STATUS=handed over rendered-worker-1"},
		"joined":      {map[string]string{handoff.KubeletCertPath: "x"}, true, "STATUS=the kubelet has its client certificate"},
		"damaged":     {map[string]string{snapshot.Path: "{}"}, false, "STATUS=failed: " + snapshot.Path},
	} {
		socket := filepath.Join(t.TempDir(), "notify")
		listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		got := runAgent(t, []string{"NOTIFY_SOCKET=" + socket}, "firstboot", "--root", born(t, s, test.files))
		var heard strings.Builder
		buffer := make([]byte, 65536)
		for listener.SetReadDeadline(time.Now().Add(50*time.Millisecond)) == nil {
			n, err := listener.Read(buffer)
			if err != nil {
				break
			}
			fmt.Fprintf(&heard, "%s\n", buffer[:n])
		}
		_ = listener.Close()
		if strings.Contains(heard.String(), "READY=1") != test.ready || !strings.Contains(heard.String(), test.says) || (got.code == 0) != test.ready {
			t.Errorf("%s: exit %d, systemd heard\n%s\nwant ready %v and %q", name, got.code, heard.String(), test.ready, test.says)
		}
	}
}

// --on-failure=block keeps trying: the unit goes on starting, and the kubelet, ordered after it, waits. Once the cause is
// mended it ends by itself.
func TestBlock(t *testing.T) {
	s := rendered(t)
	dir := born(t, s, map[string]string{snapshot.Path: "{}"})
	cmd := exec.Command(agent, "firstboot", "--root", dir, "--on-failure=block")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	if err := os.WriteFile(filepath.Join(dir, snapshot.Path), s.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("mended, and it ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill()
		t.Error("mended, and it did not end")
	}
}
