// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/e2e/kube"
)

// program is the built server.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "replay")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "mcs")
	if out, err := exec.Command("go", "build", "-o", program, "../../mcs/cmd/mcs").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building mcs: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// server is mcs serve with its state, which outlives the process.
type server struct {
	t         testing.TB
	dir, port string
	args      []string
	cmd       *exec.Cmd
}

// newServer prepares a server on a cluster, with credentials for nodes.
func newServer(t testing.TB, c *kube.Cluster, kubeconfig string, more ...string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir()}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, s.port, _ = net.SplitHostPort(listener.Addr().String())
	_ = listener.Close()
	tokens := filepath.Join(s.dir, "tokens")
	if err := os.Mkdir(tokens, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"token": "bootstrapper-token", "ca.crt": "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"} {
		if err := os.WriteFile(filepath.Join(tokens, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.args = append([]string{
		"serve", "--kubeconfig", kubeconfig, "--node-token-dir", tokens, "--state-dir", filepath.Join(s.dir, "state"), "--dev-tls",
		"--listen", "127.0.0.1:" + s.port, "--metrics-listen=", "--external-url", "https://127.0.0.1:" + s.port, "--agent", "none",
	}, more...)
	c.Apply(kube.Controllers, "", kube.Controller("https://api-int.example.com:6443", []byte("KUBELET CA\n"), nil))
	return s
}

func (s *server) url(path string) string { return "https://127.0.0.1:" + s.port + path }

// start starts the process and waits until it listens.
func (s *server) start() {
	s.t.Helper()
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the process has it
	s.cmd = exec.Command(program, s.args...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.kill)
	s.eventually("listening", func() error {
		connection, err := net.Dial("tcp", "127.0.0.1:"+s.port)
		if err == nil {
			_ = connection.Close()
		}
		return err
	})
}

func (s *server) logFile() string { return filepath.Join(s.dir, "log") }

// kill ends the process as kill -9 does.
func (s *server) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	_ = s.cmd.Wait()
}

// client is a fresh one: every machine makes its own connections.
func (s *server) client() *http.Client {
	s.t.Helper()
	var ca []byte
	s.eventually("a CA", func() (err error) {
		ca, err = os.ReadFile(filepath.Join(s.dir, "state/tls/ca.crt"))
		return err
	})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool}, ResponseHeaderTimeout: 10 * time.Second, DisableCompression: true,
	}}
}

func (s *server) eventually(what string, check func() error) {
	s.t.Helper()
	s.within(30*time.Second, what, check)
}

// within waits until check returns nil.
func (s *server) within(most time.Duration, what string, check func() error) {
	s.t.Helper()
	deadline := time.Now().Add(most)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			lines := strings.Split(s.said(), "\n")
			s.t.Fatalf("%s: %v; the server said:\n%s", what, err, strings.Join(lines[max(0, len(lines)-30):], "\n"))
		}
		time.Sleep(most / 5000)
	}
}

// said is the server's log so far.
func (s *server) said() string {
	text, _ := os.ReadFile(s.logFile()) // nothing was said before it is there
	return string(text)
}

// ready waits until /readyz says so.
func (s *server) ready() {
	s.t.Helper()
	client := s.client()
	defer client.CloseIdleConnections()
	s.eventually("ready", func() error {
		response, err := client.Get(s.url("/readyz"))
		if err != nil {
			return err
		}
		defer response.Body.Close() //nolint:errcheck // only its status is wanted
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz: %s", response.Status)
		}
		return nil
	})
}
