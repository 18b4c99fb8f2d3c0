// SPDX-License-Identifier: Apache-2.0

// Package devtls makes a certificate authority and a server certificate in a folder, for trying the server out and for
// small installations without a PKI. What it made before is used again as long as it is good.
package devtls

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcsnap/mcsnap/snapshot/durable"
)

// Files are the paths of what Ensure made. Keys are readable by the owner alone.
type Files struct {
	CA, CAKey string // the authority: stubs carry CA
	Cert, Key string // the server's
}

const (
	// backdated is how far in the past certificates begin: a machine whose clock is wrong must not refuse them.
	backdated = 24 * time.Hour
	caLife    = 10 * 365 * 24 * time.Hour
	leafLife  = 365 * 24 * time.Hour
	// renewBefore is how long before its end a certificate is made anew when the server starts.
	renewBefore = 30 * 24 * time.Hour
)

// Ensure returns an authority and a server certificate for the names and addresses, made in dir unless they are there
// and good. The authority outlives its server certificates, so that stubs keep working.
func Ensure(dir string, names []string, now time.Time) (Files, error) {
	f := Files{
		CA: filepath.Join(dir, "ca.crt"), CAKey: filepath.Join(dir, "ca.key"),
		Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"),
	}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return f, fmt.Errorf("dev TLS: %w", err)
	}
	ca, caKey, err := load(f.CA, f.CAKey)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now.After(ca.NotAfter.Add(-renewBefore)) {
		ca, caKey, err = makeCA(f, now)
	}
	if err != nil {
		return f, err
	}
	leaf, _, err := load(f.Cert, f.Key)
	if err == nil && good(leaf, ca, names, now) {
		return f, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	return f, makeLeaf(f, ca, caKey, names, now)
}

func makeCA(f Files, now time.Time) (*x509.Certificate, crypto.Signer, error) {
	serial, err := serialNumber()
	if err != nil {
		return nil, nil, err
	}
	return sign(f.CA, f.CAKey, &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "mcsnap dev CA " + serial.Text(36)[:6]},
		NotBefore:    now.Add(-backdated), NotAfter: now.Add(caLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}, nil, nil)
}

func makeLeaf(f Files, ca *x509.Certificate, caKey crypto.Signer, names []string, now time.Time) error {
	serial, err := serialNumber()
	if err != nil {
		return err
	}
	leaf := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "mcsnap"},
		NotBefore:    now.Add(-backdated), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, name)
		}
	}
	_, _, err = sign(f.Cert, f.Key, leaf, ca, caKey)
	return err
}

// sign makes a key and a certificate for it and writes both, the key first: a certificate without its key would be
// taken for a good one. With no authority given the certificate signs itself.
func sign(certPath, keyPath string, cert, ca *x509.Certificate, caKey crypto.Signer) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("dev TLS: %w", err)
	}
	if ca == nil {
		ca, caKey = cert, key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, ca, key.Public(), caKey)
	if err != nil {
		return nil, nil, fmt.Errorf("dev TLS: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("dev TLS: %w", err)
	}
	if err := durable.WriteFile(keyPath, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600); err != nil {
		return nil, nil, fmt.Errorf("dev TLS: %w", err)
	}
	if err := durable.WriteFile(certPath, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		return nil, nil, fmt.Errorf("dev TLS: %w", err)
	}
	signed, err := x509.ParseCertificate(der)
	return signed, key, err
}

// load reads a certificate and its key. A pair that does not fit is treated as missing: a power cut came between.
func load(certPath, keyPath string) (*x509.Certificate, crypto.Signer, error) {
	cert, err := os.ReadFile(certPath)
	if err != nil {
		return nil, nil, fmt.Errorf("dev TLS: %w", err)
	}
	key, err := os.ReadFile(keyPath)
	if err != nil {
		return nil, nil, fmt.Errorf("dev TLS: %w", err)
	}
	damaged := func(path string) error {
		return fmt.Errorf("dev TLS: %s: not what mcs wrote; remove it and its folder's other files, and render stubs again", path)
	}
	certBlock, _ := pem.Decode(cert)
	keyBlock, _ := pem.Decode(key)
	if certBlock == nil {
		return nil, nil, damaged(certPath)
	}
	if keyBlock == nil {
		return nil, nil, damaged(keyPath)
	}
	parsed, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, nil, damaged(certPath)
	}
	private, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	signer, ok := private.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		return nil, nil, damaged(keyPath)
	}
	if !signer.PublicKey.Equal(parsed.PublicKey) {
		return nil, nil, fmt.Errorf("dev TLS: %s does not belong to %s: %w", keyPath, certPath, fs.ErrNotExist)
	}
	return parsed, signer, nil
}

// good reports whether the server's certificate can be used as it is.
func good(leaf, ca *x509.Certificate, names []string, now time.Time) bool {
	return leaf.CheckSignatureFrom(ca) == nil &&
		now.After(leaf.NotBefore) && now.Before(leaf.NotAfter.Add(-renewBefore)) &&
		!slices.ContainsFunc(names, func(name string) bool { return leaf.VerifyHostname(name) != nil })
}

func serialNumber() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("dev TLS: %w", err)
	}
	return serial.SetBit(serial, 119, 1), nil // never short, never zero
}
