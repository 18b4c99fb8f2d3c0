// SPDX-License-Identifier: Apache-2.0

package devtls

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var names = []string{"localhost", "mcs.example.com", "127.0.0.1", "::1"}

func ensure(t *testing.T, dir string, names []string, now time.Time) (Files, *x509.Certificate) {
	t.Helper()
	f, err := Ensure(dir, names, now)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(f.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	for _, name := range names {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	return f, pair.Leaf
}

// Field cases 45 (clocks that are wrong by a day) and 84 (keys are private).
func TestEnsure(t *testing.T) {
	now := time.Now()
	f, leaf := ensure(t, filepath.Join(t.TempDir(), "tls"), names, now)
	if now.Sub(leaf.NotBefore) < 24*time.Hour {
		t.Errorf("the certificate begins at %v, want a day before %v", leaf.NotBefore, now)
	}
	for _, key := range []string{f.Key, f.CAKey} {
		info, err := os.Stat(key)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", key, info.Mode(), err)
		}
	}
}

func TestEnsureKeepsAndRenews(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	f, first := ensure(t, dir, names, now)
	ca, _ := os.ReadFile(f.CA)
	same := func() bool { b, _ := os.ReadFile(f.CA); return string(b) == string(ca) }

	if _, again := ensure(t, dir, names, now); !again.Equal(first) {
		t.Error("a good certificate was made anew")
	}
	_, more := ensure(t, dir, append(names, "10.0.2.2"), now)
	if more.Equal(first) || !same() {
		t.Error("another name wants another certificate of the same authority")
	}
	_, later := ensure(t, dir, names, now.Add(350*24*time.Hour))
	if later.Equal(more) || !same() {
		t.Error("a certificate about to end wants another one of the same authority")
	}
	if err := os.Remove(f.Key); err != nil {
		t.Fatal(err)
	}
	ensure(t, dir, names, now)
	ensure(t, dir, names, now.Add(caLife))
	if same() {
		t.Error("an authority that has ended was kept")
	}
}

func TestEnsureRefusesDamage(t *testing.T) {
	for _, name := range []string{"ca.crt", "ca.key", "tls.crt", "tls.key"} {
		dir := t.TempDir()
		ensure(t, dir, names, time.Now())
		if err := os.WriteFile(filepath.Join(dir, name), []byte("SECRET"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Ensure(dir, names, time.Now())
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s damaged: %v", name, err)
		}
	}
}
