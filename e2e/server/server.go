// SPDX-License-Identifier: Apache-2.0

// Package server runs the built programs as a person would: mcs over a cluster or a folder, a client that asks it as
// Ignition asks, and ignition-stub for what a machine is given. It is the one place where tests and the demo start a
// server. It knows nothing of nodes.
//
// A program uses Server, whose methods return errors. A test uses Test, which fails the test instead:
//
//	func TestMain(m *testing.M) { server.Main(m) } // builds mcs; without it bin/mcs of `make build` is run
//
//	s := server.Start(t, "serve", "--kubeconfig", cluster.Kubeconfig(cluster.Admin), "--external-url", server.URL, …)
//	s.Says("listening")
//	s.Kill(); s.Up() // the same state, the same address
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/mcsnap/mcsnap/e2e/lab"
)

// Patience is how long the server may take for anything it is waited for. It takes well under a second; this is for
// machines that are busy with something else.
const Patience = time.Minute

// URL stands in Args for the server's own, which is known only when it has a port.
const URL = "$URL"

// Server is one mcs, which may end and start again: its state, its address and its log outlive the process. One goroutine
// at a time may start or end it; anyone may ask it.
type Server struct {
	Args  []string // "serve" or "bootstrap", and its flags but for --state-dir, --listen and --metrics-listen
	Env   []string // what its environment has besides this process's, as NAME=VALUE
	State string   // the folder it keeps what it captured in
	Host  string   // the address that it listens on and clients use; "" is 127.0.0.1
	Port  int      // 0 means a free one, and from its first start on always the same
	Log   string   // the file that gets what it says, of all its runs
	Disk  string   // options of a tmpfs (size=1m) that its state is on, seen by it alone and gone with it; "" for none
	CA    string   // the certificate its clients trust; "" is the one of the authority that --dev-tls makes

	metrics string // the address of its metrics, in this run
	begun   int64  // how long the log was when this run began
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has ended and its log is whole
}

// Bootstrap is how the built mcs serves a cluster's folder with the built agent, and no credentials.
func Bootstrap(cluster string) ([]string, error) {
	bin, err := Bin()
	if err != nil {
		return nil, err
	}
	return []string{"bootstrap", "--dir", cluster, "--dev-tls", "--no-credentials", "--external-url", URL,
		"--agent", runtime.GOARCH + "=" + filepath.Join(bin, "mcsnap-agent")}, nil
}

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

// Program is the mcs that is run: the one that Main built, else bin/mcs.
func Program() (string, error) {
	if built != "" {
		return built, nil
	}
	bin, err := Bin()
	return filepath.Join(bin, "mcs"), err
}

// Start starts the server and returns when it listens. It ends with Stop or Kill, and with the thread that started it: a
// caller which is a program of its own should hold that thread (runtime.LockOSThread).
func (s *Server) Start(ctx context.Context) error {
	program, err := Program()
	if err != nil {
		return err
	}
	if s.Host == "" {
		s.Host = "127.0.0.1"
	}
	if s.Port == 0 && strings.Contains(strings.Join(s.Args, " "), URL) {
		if s.Port, err = freePort(s.Host); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("the server's log: %w", err)
	}
	defer log.Close() //nolint:errcheck // the process has its own
	if info, err := log.Stat(); err == nil {
		s.begun = info.Size()
	}
	cmd := exec.Command(program, s.arguments()...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if s.Disk != "" {
		s.ownDisk(cmd)
	}
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // how it ended is in its ProcessState
	s.cmd, s.ended = cmd, ended
	return s.until(ctx, "it listened", s.listens)
}

func (s *Server) arguments() []string {
	args := make([]string, 0, len(s.Args)+6)
	for _, arg := range s.Args {
		args = append(args, strings.ReplaceAll(arg, URL, s.URL()))
	}
	return append(args, "--state-dir", s.State, "--listen", fmt.Sprintf("%s:%d", s.Host, s.Port), "--metrics-listen", "127.0.0.1:0")
}

// Stop ends the server as a service manager would, and waits for it. Another exit code than 0 is an error.
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
	case <-s.ended:
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			return fmt.Errorf("the server ended with exit code %d; it said: %s", code, s.LastWords())
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

// Process is the running server's, nil when it does not run.
func (s *Server) Process() *os.Process {
	if s.cmd == nil {
		return nil
	}
	return s.cmd.Process
}

// until asks every few milliseconds until there is no error, the server ends or the time is over.
func (s *Server) until(ctx context.Context, what string, ask func() error) error {
	return s.within(ctx, Patience, what, ask)
}

func (s *Server) within(ctx context.Context, most time.Duration, what string, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		asked := ask()
		if asked == nil {
			return nil
		}
		select {
		case <-s.ended:
			s.cmd = nil
			return fmt.Errorf("the server ended before %s; it said: %s", what, s.LastWords())
		case <-ctx.Done():
			return fmt.Errorf("waited %v until %s: %w; the server said: %s", most, what, asked, s.LastWords())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func freePort(host string) (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close() //nolint:errcheck // only its number is wanted
	return listener.Addr().(*net.TCPAddr).Port, nil
}
