// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/e2e/server"
	"github.com/mcsnap/mcsnap/mcs/devtls"
	"github.com/mcsnap/mcsnap/snapshot"
)

// booting fetches a config as Ignition does, a hundred times faster: every attempt on a connection of its own,
// connection errors and 5xx tried again after 2 ms doubling to 50 ms, everything else final. It returns the snapshot in
// the body, or what would have ended the boot.
func booting(url string, roots *x509.CertPool, requests *atomic.Int64, giveUp time.Time) (*snapshot.Snapshot, error) {
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		if time.Now().After(giveUp) {
			return nil, fmt.Errorf("%s: never answered", url)
		}
		requests.Add(1)
		found, again, err := attempt(url, roots)
		if !again {
			return found, err
		}
		time.Sleep(wait)
	}
}

func attempt(url string, roots *x509.CertPool) (found *snapshot.Snapshot, again bool, err error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableCompression: true, ResponseHeaderTimeout: 10 * time.Second}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, false, err
	}
	request.Header.Set("Accept", "application/vnd.coreos.ignition+json;version=3.4.0, */*;q=0.1")
	request.Header.Set("Accept-Encoding", "identity")
	reply, err := transport.RoundTrip(request)
	if err != nil {
		return nil, true, nil
	}
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode >= 500 {
		return nil, true, nil
	}
	if reply.StatusCode != http.StatusOK {
		return nil, false, fmt.Errorf("final answer %s", reply.Status)
	}
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil, false, fmt.Errorf("the body was cut short: %w", err)
	}
	if !json.Valid(body) {
		return nil, false, fmt.Errorf("the body is not JSON: %d bytes", len(body))
	}
	found, err = snapshot.Extract(body)
	return found, false, err
}

// place replaces a file at once, or in two halves with a rest between them.
func place(t *testing.T, path, text string, halves bool) {
	t.Helper()
	if halves {
		if err := os.WriteFile(path, []byte(text[:len(text)/2]), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(400 * time.Millisecond) // longer than the server waits for a file to come to rest
	}
	next := path + ".new"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

// Machines boot while configs churn, files are half written, certificates rotate and the server restarts: none meets
// an answer that would end its boot (field cases 40, 62, 63 and 79).
func TestNoFatalAnswer(t *testing.T) {
	dir, pki := copyFolder(t), t.TempDir()
	files, err := devtls.Ensure(pki, []string{"127.0.0.1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	cert, key := filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	install := func() {
		c, _ := os.ReadFile(files.Cert)
		k, _ := os.ReadFile(files.Key)
		place(t, cert, string(c), false) // for a moment the pair does not match
		time.Sleep(20 * time.Millisecond)
		place(t, key, string(k), false)
	}
	install()
	args := []string{"bootstrap", "--dir", dir, "--no-credentials", "--agent", "none", "--tls-cert", cert, "--tls-key", key}
	s := server.New(t, args...)
	s.CA = files.CA
	s.Up()
	served(s)
	address := strings.TrimPrefix(s.URL(), "https://")

	var requests, boots, failures atomic.Int64
	var seen sync.Map
	var machines sync.WaitGroup
	end := make(chan struct{})
	for i := range 8 {
		url := "https://" + address + "/config/" + []string{"worker", "master"}[i%2]
		machines.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				found, err := booting(url, roots, &requests, time.Now().Add(60*time.Second))
				boots.Add(1)
				if err != nil {
					failures.Add(1)
					t.Errorf("%s: %v", url, err)
					return
				}
				seen.Store(found.Digest(), true)
			}
		})
	}

	config := filepath.Join(dir, "machine-configs/rendered-worker-0123456789abcdef0123456789abcdef.yaml")
	original, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	restarts, rotations := 0, 0
	for round := range 4 {
		name := fmt.Sprintf("rendered-worker-%032x", round+1)
		text := strings.ReplaceAll(strings.ReplaceAll(string(original), "rendered-worker-0123456789abcdef0123456789abcdef", name), "hello%20worker", name)
		place(t, filepath.Join(dir, "machine-configs", name+".yaml"), text, true)
		pool, err := os.ReadFile("testdata/folder/machine-pools/worker.yaml")
		if err != nil {
			t.Fatal(err)
		}
		place(t, filepath.Join(dir, "machine-pools/worker.yaml"), strings.ReplaceAll(string(pool), "rendered-worker-0123456789abcdef0123456789abcdef", name), round%2 == 0)
		s.Says("rendered=" + name)
		_ = os.Remove(filepath.Join(dir, "machine-configs", name+".yaml")) // captured: nobody is hurt

		if err := os.Remove(files.Cert); err != nil {
			t.Fatal(err)
		}
		if _, err := devtls.Ensure(pki, []string{"127.0.0.1"}, time.Now()); err != nil {
			t.Fatal(err)
		}
		before := serial(t, address, roots)
		install()
		for deadline := time.Now().Add(30 * time.Second); serial(t, address, roots) == before; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the new certificate is not taken up")
			}
		}
		rotations++

		s.Down()
		s.Up()
		restarts++
		served(s)
	}
	close(end)
	machines.Wait()
	configs := 0
	seen.Range(func(any, any) bool { configs++; return true })
	fmt.Printf("booting under change: %d requests, %d boots, %d configs, %d certificates, %d restarts, %d failures\n",
		requests.Load(), boots.Load(), configs, rotations, restarts, failures.Load())
	if configs < 4 {
		t.Errorf("the machines saw %d configs: the test shows less than it says", configs)
	}
}

// serial returns the serial number of the certificate that a new connection gets.
func serial(t *testing.T, address string, roots *x509.CertPool) string {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots})
	if err != nil {
		t.Fatalf("a handshake failed while the certificate was being replaced: %v", err)
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// Field case 27: a folder that is filled after the start is served without a restart, and its nodes were told to wait.
func TestFilesThatComeLater(t *testing.T) {
	dir := t.TempDir()
	s := server.Start(t, "bootstrap", "--dir", dir, "--no-credentials", "--dev-tls", "--agent", "none")
	reply, err := s.Client().Get(s.URL() + "/config/worker")
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	if reply.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d", reply.StatusCode)
	}
	if err := os.CopyFS(dir, os.DirFS("testdata/folder")); err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(filepath.Join(s.State, "tls/ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	if _, err := booting(s.URL()+"/config/worker", roots, new(atomic.Int64), time.Now().Add(30*time.Second)); err != nil {
		t.Error(err)
	}
	if n := strings.Count(s.Output(), "refused; said once"); n > 2 {
		t.Errorf("one pool's nodes were complained of %d times", n)
	}
}

// What was served is served after a restart with an empty folder, by name and by digest; an agent of yesterday too.
func TestRestartWithoutAFolder(t *testing.T) {
	dir := copyFolder(t)
	s := server.Start(t, "bootstrap", "--dir", dir, "--no-credentials", "--dev-tls", "--agent", "none")
	served(s)
	get := func(path string) string {
		reply, err := s.Client().Get(s.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = reply.Body.Close() }()
		body, err := io.ReadAll(reply.Body)
		if err != nil || reply.StatusCode != http.StatusOK {
			t.Errorf("%s: %d, %v", path, reply.StatusCode, err)
		}
		return reply.Header.Get("Mcsnap-Snapshot-Digest") + string(body)
	}
	before := get("/config/worker")
	s.Down()
	if err := os.RemoveAll(filepath.Join(dir, "machine-configs")); err != nil {
		t.Fatal(err)
	}
	s.Up()
	served(s)
	if after := get("/config/worker"); after != before {
		t.Error("the answer after the restart differs")
	}
	digest, err := snapshot.ParseDigest(before[:len("sha256:")+64])
	if err != nil {
		t.Fatal(err)
	}
	if sealed, err := snapshot.Open([]byte(get("/snapshot/" + digest.PathForm())[len(digest):])); err != nil || sealed.Digest() != digest {
		t.Errorf("the sealed document: %v", err)
	}
	reply, err := http.Get(s.Metrics())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reply.Body.Close() }()
	if text, _ := io.ReadAll(reply.Body); !strings.Contains(string(text), `mcsnap_pool_ready{pool="worker"} 1`) {
		t.Errorf("the metrics:\n%s", text)
	}
}
