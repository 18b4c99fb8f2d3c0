// SPDX-License-Identifier: Apache-2.0

package main

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
	"syscall"
	"time"
)

// server is bin/mcs as a process, and a client that trusts its CA.
type server struct {
	cmd    *exec.Cmd
	ended  chan error
	log    string // file
	url    string // https://localhost:PORT
	caFile string
	client *http.Client
}

// stop ends the server as a service manager would, and waits for it.
func (s *server) stop() error {
	if s.cmd == nil {
		return nil
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the server: %w", err)
	}
	select {
	case err := <-s.ended:
		if err != nil {
			return fmt.Errorf("the server did not end well: %w", err)
		}
		return nil
	case <-time.After(10 * time.Second):
		return errors.Join(errors.New("the server did not end within 10 s of SIGTERM"), s.cmd.Process.Kill())
	}
}

// start runs the command until stop, with all it says going to a file.
func (s *server) start(name string, args ...string) error {
	out, err := os.Create(s.log)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	s.cmd, s.ended = cmd, make(chan error, 1)
	go func() { s.ended <- cmd.Wait() }()
	return nil
}

// until asks a question every few milliseconds until the answer is yes, the server ends or the time is over.
func (s *server) until(ctx context.Context, what string, answered func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for !answered() {
		select {
		case err := <-s.ended:
			s.cmd = nil
			return fmt.Errorf("the server ended before %s: %w; it said: %s", what, err, s.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// trust makes a client that accepts the server's CA and no other.
func (s *server) trust() error {
	pem, err := os.ReadFile(s.caFile)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s: no certificate in it", s.caFile)
	}
	s.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	return nil
}

// get asks as Ignition asks, and returns body and headers of a 200.
func (s *server) get(ctx context.Context, path string) ([]byte, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
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

func (s *server) lastWords() []byte {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return nil
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-10):], []byte("\n"))
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
