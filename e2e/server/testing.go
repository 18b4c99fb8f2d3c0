// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// built is the mcs that Main built.
var built string

// Main builds mcs as the tree is now, runs a package's tests on it, and ends the process. It is what TestMain calls.
func Main(m *testing.M) {
	dir, err := os.MkdirTemp("", "mcs")
	if err != nil {
		panic(err)
	}
	program := filepath.Join(dir, "mcs")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/mcsnap/mcsnap/mcs/cmd/mcs").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build mcs: %v\n%s", err, out)
		os.Exit(1)
	}
	built = program
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// Execute runs mcs to its end and returns what it wrote and its exit code.
func Execute(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	program, err := Program()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); cmd.ProcessState == nil || ctx.Err() != nil {
		t.Fatalf("mcs %q: %v, %v", args, err, ctx.Err())
	}
	return out.String(), log.String(), cmd.ProcessState.ExitCode()
}

// Test is a server that a test owns: what goes wrong with it fails the test.
type Test struct {
	*Server
	t testing.TB
}

// New is a server that does not run yet, with state and log in a folder of the test. It ends with the test.
func New(t testing.TB, args ...string) *Test {
	t.Helper()
	dir := t.TempDir()
	return Own(t, &Server{Args: args, State: filepath.Join(dir, "state"), Log: filepath.Join(dir, "mcs.log")})
}

// Own has a test own a server.
func Own(t testing.TB, server *Server) *Test {
	s := &Test{Server: server, t: t}
	t.Cleanup(func() {
		if err := s.Server.Kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the server said last:\n%s", s.LastWords())
		}
	})
	return s
}

// Start is New and Up.
func Start(t testing.TB, args ...string) *Test {
	t.Helper()
	s := New(t, args...)
	s.Up()
	return s
}

// Up starts the server and returns when it listens.
func (s *Test) Up() {
	s.t.Helper()
	s.must(s.Server.Start(s.t.Context()))
}

// Down ends the server in order.
func (s *Test) Down() {
	s.t.Helper()
	s.must(s.Stop())
}

// Kill ends the server as a power cut would.
func (s *Test) Kill() {
	s.t.Helper()
	s.must(s.Server.Kill())
}

// Ready waits until /readyz says so.
func (s *Test) Ready() {
	s.t.Helper()
	s.must(s.Server.Ready(s.t.Context()))
}

// Client is one with connections of its own, as every machine has.
func (s *Test) Client() *http.Client {
	s.t.Helper()
	client, err := s.NewClient()
	s.must(err)
	return client
}

// Says waits until one line that was written since the server's last start has all of the words.
func (s *Test) Says(words ...string) {
	s.t.Helper()
	s.must(s.until(s.t.Context(), fmt.Sprintf("it said %q", words), func() error {
		if !hasLine(s.Output(), words) {
			return fmt.Errorf("it does not say %q", words)
		}
		return nil
	}))
}

// Eventually waits until check returns nil, or the server ends.
func (s *Test) Eventually(what string, check func() error) {
	s.t.Helper()
	s.Within(Patience, what, check)
}

// Within is Eventually for what takes longer.
func (s *Test) Within(most time.Duration, what string, check func() error) {
	s.t.Helper()
	s.must(s.within(s.t.Context(), most, what, check))
}

// Memory reads a figure of the process in bytes: VmRSS is what it holds now, VmHWM the most it held.
func (s *Test) Memory(figure string) int {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Process().Pid))
	s.must(err)
	found := regexp.MustCompile(figure + `:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		s.t.Fatalf("no %s in\n%s", figure, text)
	}
	kilobytes, err := strconv.Atoi(string(found[1]))
	s.must(err)
	return kilobytes << 10
}

// Gauge reads one metric: its name, with its labels as they are written.
func (s *Test) Gauge(name string) float64 {
	s.t.Helper()
	value, err := s.gauge(name)
	s.must(err)
	return value
}

func (s *Test) gauge(name string) (float64, error) {
	client := http.Client{Timeout: Patience}
	reply, err := client.Get(s.Metrics())
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close() //nolint:errcheck // only read
	var text bytes.Buffer
	if _, err := text.ReadFrom(reply.Body); err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text.Bytes()) {
		if value, ok := bytes.CutPrefix(line, []byte(name+" ")); ok {
			return strconv.ParseFloat(string(bytes.TrimSpace(value)), 64)
		}
	}
	return 0, fmt.Errorf("no metric %s", name)
}

func (s *Test) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}
