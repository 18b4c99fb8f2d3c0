// SPDX-License-Identifier: Apache-2.0

// Package server runs the built programs as a person would: bin/mcs over a cluster's folder, a client that asks it as
// Ignition asks, and bin/ignition-stub for what a machine is given. It knows nothing of nodes.
package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mcsnap/mcsnap/e2e/lab"
)

// Patience is how long the server may take for anything it is waited for. It takes well under a second; this is for
// machines that are busy with something else.
const Patience = time.Minute

// Server is one mcs process.
type Server struct {
	Cluster string // the folder it serves
	State   string // the folder it keeps what it captured in
	Host    string // the address that it listens on and clients use
	Port    int    // 0 means a free one, and from then on always the same
	Log     string // the file that gets what it says

	bin    string
	cmd    *exec.Cmd
	ended  chan error
	client *http.Client
}

// URL is where clients find the server.
func (s *Server) URL() string { return fmt.Sprintf("https://%s:%d", s.Host, s.Port) }

// CAFile is the certificate of the authority that the server made for itself.
func (s *Server) CAFile() string { return filepath.Join(s.State, "tls", "ca.crt") }

// Bin is the folder of the built programs.
func Bin() (string, error) {
	top, err := lab.Top()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(top, "bin")
	for _, program := range []string{"mcs", "ignition-stub", "mcsnap-agent"} {
		if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
			return "", fmt.Errorf("%w; build it with `make build`", err)
		}
	}
	return bin, nil
}

// Start starts the server and returns when it is ready. It ends with Stop or Kill, and with the thread that started it:
// a caller which is a program of its own should hold that thread (runtime.LockOSThread).
func (s *Server) Start(ctx context.Context) (err error) {
	if s.bin, err = Bin(); err != nil {
		return err
	}
	if s.Port == 0 {
		if s.Port, err = freePort(s.Host); err != nil {
			return err
		}
	}
	out, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("the server's log: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(filepath.Join(s.bin, "mcs"), "bootstrap",
		"--dir", s.Cluster, "--state-dir", s.State, "--dev-tls", "--no-credentials",
		"--listen", fmt.Sprintf("%s:%d", s.Host, s.Port), "--metrics-listen=", "--external-url", s.URL(),
		"--agent", runtime.GOARCH+"="+filepath.Join(s.bin, "mcsnap-agent"))
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	s.cmd, s.ended = cmd, make(chan error, 1)
	go func(ended chan<- error) { ended <- cmd.Wait() }(s.ended)
	return s.until(ctx, "it was ready", func() error {
		if err := s.trust(); err != nil {
			return err
		}
		_, _, err := s.Get(ctx, "/readyz")
		return err
	})
}

// Stop ends the server as a service manager would, and waits for it.
func (s *Server) Stop() error {
	if s.cmd == nil {
		return nil
	}
	cmd := s.cmd
	s.cmd = nil
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the server: %w", err)
	}
	select {
	case err := <-s.ended:
		if err != nil {
			return fmt.Errorf("the server did not end well: %w; it said: %s", err, s.LastWords())
		}
		return nil
	case <-time.After(Patience):
		return errors.Join(fmt.Errorf("the server did not end within %v of SIGTERM", Patience), cmd.Process.Kill())
	}
}

// Kill ends the server as a power cut would.
func (s *Server) Kill() error {
	if s.cmd == nil {
		return nil
	}
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the server: %w", err)
	}
	<-s.ended
	s.cmd = nil
	return nil
}

// Serves waits until the pool's body is that of the rendered config of that name.
func (s *Server) Serves(ctx context.Context, pool, rendered string) error {
	return s.until(ctx, "it served "+rendered, func() error {
		_, header, err := s.Get(ctx, "/config/"+pool)
		if err == nil && header.Get("Mcsnap-Rendered-Config") != rendered {
			err = fmt.Errorf("it serves %s", header.Get("Mcsnap-Rendered-Config"))
		}
		return err
	})
}

// Get asks as Ignition asks, and returns body and headers of a 200. Any other answer is an error.
func (s *Server) Get(ctx context.Context, path string) ([]byte, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+path, nil)
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Accept", "application/vnd.coreos.ignition+json;version=3.5.0, */*;q=0.1")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", path, response.Status, bytes.TrimSpace(body))
	}
	return body, response.Header, err
}

// Stub is the user-data of a machine of that pool, as ignition-stub renders it.
func (s *Server) Stub(ctx context.Context, pool string, flags ...string) ([]byte, error) {
	args := append([]string{"render", "--url", s.URL() + "/config/" + pool, "--ca", s.CAFile()}, flags...)
	render := exec.CommandContext(ctx, filepath.Join(s.bin, "ignition-stub"), args...)
	var said bytes.Buffer
	render.Stderr = &said
	stub, err := render.Output()
	if err != nil {
		return nil, fmt.Errorf("ignition-stub render: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return stub, nil
}

// LastWords are the last lines of the server's log.
func (s *Server) LastWords() []byte {
	text, err := os.ReadFile(s.Log)
	if err != nil {
		return nil
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-10):], []byte("\n"))
}

// Said tells whether one line of the server's log holds all of these words.
func (s *Server) Said(words ...string) bool {
	text, err := os.ReadFile(s.Log)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			return true
		}
	}
	return false
}

// until asks every few milliseconds until there is no error, the server ends or the time is over.
func (s *Server) until(ctx context.Context, what string, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for {
		asked := ask()
		if asked == nil {
			return nil
		}
		select {
		case err := <-s.ended:
			s.cmd = nil
			return fmt.Errorf("the server ended before %s: %w; it said: %s", what, err, s.LastWords())
		case <-ctx.Done():
			return fmt.Errorf("waited %v until %s: %w", Patience, what, asked)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// trust makes a client that accepts the server's CA and no other.
func (s *Server) trust() error {
	pem, err := os.ReadFile(s.CAFile())
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s: no certificate in it", s.CAFile())
	}
	s.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true,
	}}
	return nil
}

func freePort(host string) (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
