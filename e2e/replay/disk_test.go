// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/kube"
	"github.com/mcsnap/mcsnap/e2e/server"
)

// A running server whose disk fills up, and whose disk becomes read-only: new configs are served from memory, the fault
// stands in /readyz?verbose and a metric and is one line of the log, and what was held is stored once the disk takes it.
// Field case 79: whatever happens to the disk, no answer is an empty 200.
func TestDiskFaults(t *testing.T) {
	c := kube.Start(t, kube.Options{})
	s := newServer(t, c, c.Kubeconfig(c.Admin))
	s.Disk = "size=2m"
	name := func(digit string) string { return "rendered-worker-" + strings.Repeat(digit, 32) }
	render := func(name string) {
		c.Apply(kube.Configs, "", kube.Rendered(name, name+" ", 20_000))
		c.Apply(kube.Pools, "", kube.Pool("worker", name, name, 1))
	}
	serves := func(name string) {
		t.Helper()
		s.Eventually(name+" is served", func() error {
			g := fetch(t, s, "")
			if g.status != http.StatusOK {
				return fmt.Errorf("%d %s", g.status, g.text)
			}
			if g.text == "" {
				t.Error("an empty 200")
			}
			if g.snapshot.Name() != name {
				return fmt.Errorf("%s is served", g.snapshot.Name())
			}
			return nil
		})
	}
	render(name("a"))
	s.Up()
	s.Ready()
	serves(name("a"))

	for _, fault := range []struct {
		what, reason, config string
		begin, end           func() error
	}{
		{"full", "no space left on device", name("b"), func() error { return fill(s.OnDisk("stuffing")) }, func() error { return os.Remove(s.OnDisk("stuffing")) }},
		{"read-only", "read-only file system", name("c"), s.ReadOnly, s.Writable},
	} {
		complaints := strings.Count(s.Output(), "the store takes nothing")
		if err := fault.begin(); err != nil {
			t.Fatalf("%s: %v", fault.what, err)
		}
		render(fault.config)
		serves(fault.config)
		status, text := readyz(t, s)
		if line := lineOf(text, "[!] store: "); status != http.StatusOK || !strings.Contains(line, fault.reason) || !strings.Contains(line, "1 snapshot(s) are in memory only") {
			t.Errorf("%s: /readyz says %d\n%s", fault.what, status, text)
		}
		if failing, held := s.Gauge("mcsnap_store_failing"), s.Gauge("mcsnap_store_held_snapshots"); failing != 1 || held != 1 {
			t.Errorf("%s: failing is %v, held %v", fault.what, failing, held)
		}
		if s.Gauge(`mcsnap_pool_origin{origin="memory",pool="worker"}`) != 1 {
			t.Errorf("%s: the metric does not say that the pool is served from memory", fault.what)
		}
		if said := strings.Count(s.Output(), "the store takes nothing") - complaints; said != 1 {
			t.Errorf("%s: said %d times, want once", fault.what, said)
		}
		if err := fault.end(); err != nil {
			t.Fatalf("%s: %v", fault.what, err)
		}
		s.Eventually("stored", func() error {
			if held := s.Gauge("mcsnap_store_held_snapshots"); held != 0 || s.Gauge("mcsnap_store_failing") != 0 {
				return fmt.Errorf("%v are held", held)
			}
			stored, err := os.ReadDir(s.OnDisk(filepath.Join("store/names", fault.config)))
			if err != nil || len(stored) != 1 {
				return fmt.Errorf("%d digests of the name on disk: %w", len(stored), err)
			}
			return nil
		})
		serves(fault.config)
		if _, text := readyz(t, s); lineOf(text, "[+] store ok") == "" {
			t.Errorf("%s: mended, and /readyz says\n%s", fault.what, text)
		}
	}
}

// fill writes a file until the disk has no room left.
func fill(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it is stuffing
	for piece := make([]byte, 4096); ; {
		if _, err := file.Write(piece); errors.Is(err, syscall.ENOSPC) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func readyz(t *testing.T, s *server.Test) (status int, text string) {
	t.Helper()
	client := s.Client()
	defer client.CloseIdleConnections()
	response, err := client.Get(s.URL() + "/readyz?verbose")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	all, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(all)
}

func lineOf(text, begin string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, begin) {
			return line
		}
	}
	return ""
}
