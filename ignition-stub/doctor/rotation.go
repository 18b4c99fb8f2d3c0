// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// distrust says why a chain does not verify. Field case 46: of all ways the commonest is a CA that was rotated while
// user-data kept the old one, and all that machines say is "unknown authority", for ever.
func (e *exam) distrust(chain []*x509.Certificate, err error) bool {
	leaf := chain[0]
	now := e.Now()
	if invalid, ok := err.(x509.CertificateInvalidError); ok && invalid.Reason == x509.Expired { //nolint:errorlint // as x509 returns it
		c := invalid.Cert
		if now.Before(c.NotBefore) {
			return e.fail("certificate", describe(c, now)+", and this host's clock says "+now.UTC().Format(time.RFC3339),
				"machines retry until their clock is right; backdate the certificate by a day")
		}
		return e.fail("certificate", describe(c, now), "renew it: machines refuse it, and retry for ever")
	}
	if name, ok := err.(x509.HostnameError); ok { //nolint:errorlint // as x509 returns it
		return e.fail("certificate", fmt.Sprintf("%s is for %s, not for %s", describe(leaf, now), names(leaf), name.Host),
			"reissue it with that name, or render the stub with one of its names")
	}
	stubHas := "the stub has no CA"
	if len(e.trust.cas) > 0 {
		var all []string
		for _, ca := range e.trust.cas {
			all = append(all, describe(ca, now))
		}
		stubHas = "the stub has " + strings.Join(all, ", ")
	}
	text := fmt.Sprintf("the server shows %s, issued by %q; %s", describe(leaf, now), leaf.Issuer.CommonName, stubHas)
	if slices.ContainsFunc(e.trust.cas, func(ca *x509.Certificate) bool { return bytes.Equal(ca.RawSubject, leaf.RawIssuer) }) {
		text = "the user-data still has the old CA: one of the same name, with another key: " + text
	} else if len(e.trust.cas) > 0 {
		text = "the user-data has another CA than the server's certificate was issued by: " + text
	}
	issuer, whence := e.issuer(chain)
	if issuer == nil {
		return e.fail("certificate", text, fmt.Sprintf("get the certificate of CA %q and run this again with --ca FILE: it will then print the edit that repairs the stub", leaf.Issuer.CommonName))
	}
	e.report.Repair = e.addCA(issuer)
	return e.fail("certificate", text, fmt.Sprintf("%s; the edit below adds %s to the stub. Keep the old CA until no machine needs it, and repair every copy of the user-data: new machines get it from there",
		whence, describe(issuer, now)))
}

// issuer is the CA that would make the chain verify: one the operator gave, or one the server shows itself.
func (e *exam) issuer(chain []*x509.Certificate) (ca *x509.Certificate, whence string) {
	given, _ := fetch.ParseCertificates(e.CA)
	for _, candidate := range given {
		if e.verifies(chain, candidate) {
			return candidate, "the CA given with --ca has issued the server's certificate"
		}
	}
	for _, candidate := range chain[1:] {
		if candidate.IsCA && bytes.Equal(candidate.RawSubject, candidate.RawIssuer) && e.verifies(chain, candidate) {
			return candidate, "the server shows its CA itself: compare the fingerprint with the one you know before you believe it"
		}
	}
	return nil, ""
}

func (e *exam) verifies(chain []*x509.Certificate, ca *x509.Certificate) bool {
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(ca)
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, DNSName: e.target.url.Hostname(), CurrentTime: e.Now()})
	return err == nil
}

// addCA is the edit that makes a stub trust one more CA.
func (e *exam) addCA(ca *x509.Certificate) []Patch {
	one := map[string]string{"source": contents.Base64(encodePEM(ca))}
	if len(e.stub.Ignition.Security.TLS.CertificateAuthorities) > 0 {
		return []Patch{{"add", "/ignition/security/tls/certificateAuthorities/-", one}}
	}
	tls := map[string]any{"tls": map[string]any{"certificateAuthorities": []any{one}}}
	return []Patch{{"add", "/ignition/security", tls}}
}

func names(c *x509.Certificate) string {
	all := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	return orNone(all)
}
