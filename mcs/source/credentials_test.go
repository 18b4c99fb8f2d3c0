// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
)

func kubeconfig(cluster, user string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {%s}}]
users: [{name: u, user: {%s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, cluster, user)
}

func jwt(expires time.Time) string {
	payload := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, expires.Unix()))
	return "e30." + payload + ".c2ln"
}

func clientCertificate(t *testing.T, expires time.Time) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: expires}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestCheckKubeconfig(t *testing.T) {
	const server = "server: https://api-int:6443"
	end := time.Unix(1_900_000_000, 0).UTC()
	for _, c := range []struct {
		name       string
		kubeconfig []byte
		expires    time.Time
		want       string // of the error
	}{
		{"a bootstrap token", kubeconfig(server, "token: abcdef.0123456789abcdef"), time.Time{}, ""},
		{"a service account token", kubeconfig(server, "token: "+jwt(end)), end, ""},
		{"a client certificate", kubeconfig(server, "client-certificate-data: "+clientCertificate(t, end)), end, ""},
		{"a token that looks like a JWT", kubeconfig(server, "token: SECRET.SECRET.SECRET"), time.Time{}, ""},
		{"half a file", []byte("apiVersion: v1\nkind: Config\nclusters: [{name: SECRET"), time.Time{}, "does not parse"},
		{"an empty object", []byte("{}"), time.Time{}, "current-context"},
		{"no server", kubeconfig("", "token: SECRET"), time.Time{}, "clusters[].cluster.server"},
		{"no user", []byte(strings.ReplaceAll(string(kubeconfig(server, "token: SECRET")), "user: u}", "user: v}")), time.Time{}, "names no user"},
		{"no credential", kubeconfig(server, ""), time.Time{}, "neither a token nor"},
		{"a CA by path", kubeconfig(server+", certificate-authority: /ca.crt", "token: SECRET"), time.Time{}, "certificate-authority names a file"},
		{"a token by path", kubeconfig(server, "tokenFile: /token"), time.Time{}, "tokenFile names a file"},
		{"a certificate that is none", kubeconfig(server, "client-certificate-data: U0VDUkVU"), time.Time{}, "not PEM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expires, err := CheckKubeconfig(c.kubeconfig)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error = %v, want one with %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "SECRET") {
				t.Errorf("the error quotes the file: %v", err)
			}
			if !expires.Equal(c.expires) {
				t.Errorf("expires = %v, want %v", expires, c.expires)
			}
		})
	}
}

// Field case 50: credentials that end before a slow machine has booted.
func TestJudgeExpiry(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		left             time.Duration
		problem, warning bool
	}{
		{-time.Second, true, false},
		{0, true, false},
		{5 * time.Minute, false, true},
		{30 * time.Minute, false, true},
		{2 * time.Hour, false, false},
		{24 * time.Hour, false, false},
	} {
		problem, warning := JudgeExpiry(now.Add(c.left), now)
		if (problem != "") != c.problem || (warning != "") != c.warning {
			t.Errorf("%s left: problem %q, warning %q", c.left, problem, warning)
		}
	}
	if problem, warning := JudgeExpiry(time.Time{}, now); problem+warning != "" {
		t.Errorf("credentials without an end: %q %q", problem, warning)
	}
}
