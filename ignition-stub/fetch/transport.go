// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"
)

func newTransport(o Options) (*http.Transport, error) {
	roots, err := trusted(o)
	if err != nil {
		return nil, err
	}
	proxy := o.Proxy
	if proxy == nil {
		proxy = httpproxy.FromEnvironment().ProxyFunc()
	}
	dialer := &dialer{resolver: o.Resolver, own: ownAddresses, timeout: o.AttemptTimeout}
	return &http.Transport{
		Proxy:                  func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
		DialContext:            dialer.dial,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, Time: o.Now},
		DisableCompression:     true, // a digest is of what comes
		MaxResponseHeaderBytes: 64 << 10,
		IdleConnTimeout:        10 * time.Second,
	}, nil
}

// trusted is nil for the system's certificates.
func trusted(o Options) (*x509.CertPool, error) {
	if len(o.CA) == 0 {
		return nil, nil
	}
	certificates, err := ParseCertificates(o.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if o.SystemCAs {
		if system, err := x509.SystemCertPool(); err == nil {
			roots = system
		}
	}
	for _, certificate := range certificates {
		roots.AddCert(certificate)
	}
	return roots, nil
}

// ParseCertificates reads every certificate of a PEM bundle, and refuses one that holds none or a damaged one: a CA
// that silently falls out is a machine that does not come up. The error is an [InputError].
func ParseCertificates(bundle []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, &InputError{"CA", fmt.Sprintf("holds a %.40s; take the certificates alone", block.Type)}
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, &InputError{"CA", fmt.Sprintf("certificate %d cannot be read: %v", len(certificates)+1, err)}
		}
		certificates = append(certificates, certificate)
	}
	if len(certificates) == 0 {
		return nil, &InputError{"CA", "no certificate in it; want PEM, beginning with -----BEGIN CERTIFICATE-----"}
	}
	return certificates, nil
}
