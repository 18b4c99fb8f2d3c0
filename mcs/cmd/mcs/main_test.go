// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program is the built binary: these tests see what an operator sees.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "mcs")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "mcs")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building mcs: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// server is a running mcs.
type server struct {
	t       testing.TB
	cmd     *exec.Cmd
	state   string
	url     string // https://127.0.0.1:port
	metrics string // http://127.0.0.1:port/metrics
	log     *lines
	ended   chan struct{} // closed when the process has ended and its log is whole
}

// lines is a log that is read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var listening = regexp.MustCompile(`listening"?[ ,]"?address"?[=:]"?([^" ]+)"?[ ,]"?metrics"?[=:](true|false)`)

// start runs mcs with the arguments until the test ends. State lies in state, "" for a new folder; --state-dir,
// --listen and --metrics-listen are added.
func start(t testing.TB, state string, args ...string) *server {
	t.Helper()
	if state == "" {
		state = t.TempDir()
	}
	s := &server{t: t, state: state, log: &lines{}, ended: make(chan struct{})}
	args = append(args, "--state-dir", state, "--metrics-listen", "127.0.0.1:0")
	if !strings.Contains(strings.Join(args, " "), "--listen ") {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	s.cmd = exec.Command(program, args...)
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.cmd.Wait(); close(s.ended) }()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
		if t.Failed() {
			t.Logf("the server's log:\n%s", s.log)
		}
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		for _, m := range listening.FindAllStringSubmatch(s.log.String(), -1) {
			if m[2] == "true" {
				s.metrics = "http://" + m[1] + "/metrics"
			} else if s.url == "" {
				s.url = "https://" + m[1]
			}
		}
		if s.metrics != "" {
			return s
		}
		select {
		case <-s.ended:
			t.Fatalf("mcs %q ended: %s", args, s.log)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("mcs %q does not listen: %s", args, s.log)
		}
	}
}

// stop sends SIGTERM and returns the exit code.
func (s *server) stop() int {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(30 * time.Second):
		s.t.Fatal("mcs does not end")
	}
	return s.cmd.ProcessState.ExitCode()
}

// client trusts the server's own authority; it follows no redirect and asks for no encoding.
func (s *server) client() *http.Client {
	s.t.Helper()
	pem, err := os.ReadFile(filepath.Join(s.state, "tls", "ca.crt"))
	if err != nil {
		s.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       30 * time.Second,
	}
}

// says waits until the log has the words.
func (s *server) says(words string) {
	s.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !strings.Contains(s.log.String(), words); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the log never says %q", words)
		}
	}
}

// serving waits until the folder was taken up.
func (s *server) serving() { s.t.Helper(); s.says("a pool is served") }

// execute runs mcs to its end and returns what it wrote and its exit code.
func execute(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	_ = cmd.Run()
	return out.String(), log.String(), cmd.ProcessState.ExitCode()
}

// smallAgent writes the smallest ELF file of this machine.
func smallAgent(t *testing.T) string {
	t.Helper()
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	var file bytes.Buffer
	if err := binary.Write(&file, binary.LittleEndian, elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Ehsize: 64, Phentsize: 56, Shentsize: 64,
	}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mcsnap-agent")
	if err := os.WriteFile(path, file.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// copyFolder copies the example folder, so that a test may change it.
func copyFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "folder")
	if err := os.CopyFS(dir, os.DirFS("testdata/folder")); err != nil {
		t.Fatal(err)
	}
	return dir
}
