// SPDX-License-Identifier: Apache-2.0

// Package fetchtest is a server that misbehaves on purpose, and the certificates to do so. Tests of everything that
// fetches run against it, the real Ignition among them. It listens on the loopback interface only.
package fetchtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// CA is a certificate authority made for a test.
type CA struct {
	Certificate *x509.Certificate
	PEM         []byte
	key         *ecdsa.PrivateKey
}

// NewCA makes an authority that is valid from a year ago for ten years. A change may alter its certificate.
func NewCA(t testing.TB, name string, changes ...func(*x509.Certificate)) *CA {
	t.Helper()
	template := template(name)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	for _, change := range changes {
		change(template)
	}
	ca := &CA{key: newKey(t)}
	ca.Certificate = create(t, template, template, ca.key, ca.key)
	ca.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Certificate.Raw})
	return ca
}

// Issue makes a server's certificate for localhost, 127.0.0.1 and ::1. A change may alter it.
func (ca *CA) Issue(t testing.TB, changes ...func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	template := template("server")
	template.DNSNames = []string{"localhost"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, change := range changes {
		change(template)
	}
	key := newKey(t)
	leaf := create(t, template, ca.Certificate, key, ca.key)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
}

// Changes for Issue and NewCA.
var (
	Expired = func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }
	Future  = func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }
	Other   = func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = []string{"api-int.other.example.com"}, nil }
)

func template(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		panic(err) // never: see crypto/rand
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-365 * 24 * time.Hour), NotAfter: time.Now().Add(9 * 365 * 24 * time.Hour),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func create(t testing.TB, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}
