// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// soon is when an expiry is worth a warning: user-data is seldom renewed.
const soon = 30 * 24 * time.Hour

// trust is whom the stub believes, and what the server shows.
type trust struct {
	cas   []*x509.Certificate
	roots *x509.CertPool // nil: the operating system's
}

func (e *exam) lookAtCAs() bool {
	references := e.stub.Ignition.Security.TLS.CertificateAuthorities
	if len(references) == 0 {
		e.say("CA", None, "none in the stub: machines believe those of their image, and so does this check")
		return true
	}
	var texts []string
	verdict, remedy := OK, ""
	for i, r := range references {
		bundle, err := contents.Decode(r.Source, r.Compression, contents.MaxInflated)
		if errors.Is(err, contents.ErrRemote) {
			e.warn("CA", fmt.Sprintf("CA %d is itself fetched: a machine needs another CA for it", i), "put the certificate into the stub, with ignition-stub render --ca")
			return true
		}
		var certificates []*x509.Certificate
		if err == nil {
			certificates, err = fetch.ParseCertificates(bundle)
		}
		if err != nil {
			return e.fail("CA", fmt.Sprintf("CA %d cannot be read: %v", i, err), "render the stub again, with --ca")
		}
		for _, c := range certificates {
			e.trust.cas = append(e.trust.cas, c)
			texts = append(texts, describe(c, e.Now()))
			switch left := c.NotAfter.Sub(e.Now()); {
			case left <= 0 && verdict != Fail && len(references) == 1:
				verdict, remedy = Fail, "render the stub again with the CA that is in use now"
			case left < soon && verdict == OK:
				verdict, remedy = Warn, "render the stub again with the CA's successor beside it"
			}
		}
	}
	e.trust.roots = x509.NewCertPool()
	for _, c := range e.trust.cas {
		e.trust.roots.AddCert(c)
	}
	e.report.Checks = append(e.report.Checks, Check{"CA", verdict, strings.Join(texts, "; "), remedy})
	return true
}

// errSeen ends a handshake once the server has shown its certificates: nothing is sent to a server before it is trusted.
var errSeen = errors.New("seen")

func (e *exam) lookAtCertificate() bool {
	if e.target.url.Scheme != "https" {
		e.say("certificate", None, "plain http has none")
		return true
	}
	chain, err := e.shown()
	if len(chain) == 0 {
		return e.fail("certificate", fmt.Sprintf("the server shows none: %s", handshake(err)), "check scheme and port: is it the server that answers there?")
	}
	leaf := chain[0]
	intermediates := x509.NewCertPool()
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	verify := x509.VerifyOptions{Roots: e.trust.roots, Intermediates: intermediates, DNSName: e.target.url.Hostname(), CurrentTime: e.Now()}
	chains, err := leaf.Verify(verify)
	if err != nil {
		return e.distrust(chain, err)
	}
	var way []string
	for _, c := range chains[0] {
		way = append(way, describe(c, e.Now()))
	}
	text := strings.Join(way, " ← ")
	if left := leaf.NotAfter.Sub(e.Now()); left < soon {
		e.warn("certificate", text, "the server's certificate is about to expire; renew it")
	} else {
		e.say("certificate", OK, text)
	}
	return true
}

// shown is the chain that the server presents, unverified.
func (e *exam) shown() (chain []*x509.Certificate, err error) {
	ctx, cancel := context.WithTimeout(e.ctx, e.Timeout)
	defer cancel()
	transport := e.transport(&tls.Config{
		InsecureSkipVerify: true, // the handshake is ended below, before a request is sent
		VerifyConnection: func(state tls.ConnectionState) error {
			chain = state.PeerCertificates
			return errSeen
		},
	})
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, e.target.url.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err == nil {
		response.Body.Close()
	}
	return chain, err
}

func (e *exam) transport(configuration *tls.Config) *http.Transport {
	configuration.MinVersion = tls.VersionTLS12
	configuration.ServerName = e.target.url.Hostname()
	return &http.Transport{
		TLSClientConfig: configuration, DisableCompression: true, DisableKeepAlives: true,
		ResponseHeaderTimeout: e.Timeout, TLSHandshakeTimeout: e.Timeout, MaxResponseHeaderBytes: 64 << 10,
		Proxy: func(*http.Request) (*url.URL, error) { return e.target.proxy, nil },
	}
}

func handshake(err error) string {
	switch {
	case err == nil:
		return "no TLS"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "it answers in plain HTTP"
	case isA[tls.RecordHeaderError](err):
		return "what answers there does not speak TLS"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer to the handshake in time"
	}
	return "the connection is closed during the handshake"
}

// describe is a certificate in few words: name, fingerprint, what is left.
func describe(c *x509.Certificate, now time.Time) string {
	left := c.NotAfter.Sub(now)
	life := fmt.Sprintf("%d days left", int(left.Hours()/24))
	switch {
	case left <= 0:
		life = "expired " + c.NotAfter.UTC().Format(time.DateOnly)
	case now.Before(c.NotBefore):
		life = "valid only from " + c.NotBefore.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%q (sha256 %s, %s)", c.Subject.CommonName, fingerprint(c), life)
}

// fingerprint is enough of it to tell two certificates apart by eye.
func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return fmt.Sprintf("%x", sum[:8])
}

func encodePEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func isA[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}
