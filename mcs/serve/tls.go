// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"crypto/tls"
	"fmt"
	"strings"
)

// TLSConfig says how the server speaks TLS.
type TLSConfig struct {
	// MinVersion is "1.2" (the default, "" too) or "1.3". Older ones are never spoken. 1.3 alone locks out the health
	// probes of some load balancers.
	MinVersion string
	// CipherSuites are names of crypto/tls's secure suites for TLS 1.2; empty means Go's choice. TLS 1.3's are fixed.
	CipherSuites []string
}

// Build returns the server's configuration, taking the certificate from get at each handshake.
//
// HTTP/2 is off, as in OpenShift's server: a booting node asks once, so multiplexing wins nothing; and a refusal has to
// end its connection ("Connection: close") for a load balancer to try another server, which HTTP/2 cannot say per
// answer.
func (c TLSConfig) Build(get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) (*tls.Config, error) {
	config := &tls.Config{
		GetCertificate: get, NextProtos: []string{"http/1.1"},
		// Whole records from the first byte on: small ones let a browser show something early, and cost a booting
		// node's body half again as many writes.
		DynamicRecordSizingDisabled: true,
	}
	switch c.MinVersion {
	case "", "1.2":
		config.MinVersion = tls.VersionTLS12
	case "1.3":
		config.MinVersion = tls.VersionTLS13
	default:
		return nil, fmt.Errorf("TLS minimum version %.20q: use 1.2 or 1.3; older ones are broken", c.MinVersion)
	}
	if len(c.CipherSuites) > 0 && config.MinVersion == tls.VersionTLS13 {
		return nil, fmt.Errorf("cipher suites are fixed in TLS 1.3: leave them out, or set the minimum version to 1.2")
	}
	known := map[string]uint16{}
	var names []string
	for _, suite := range tls.CipherSuites() {
		if suite.SupportedVersions[0] < tls.VersionTLS13 {
			known[suite.Name] = suite.ID
			names = append(names, suite.Name)
		}
	}
	for _, name := range c.CipherSuites {
		id, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("cipher suite %.64q is not one of %s; correct the name", name, strings.Join(names, ", "))
		}
		config.CipherSuites = append(config.CipherSuites, id)
	}
	return config, nil
}
