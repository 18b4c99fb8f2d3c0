// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

func of(whole int64) string {
	if whole < 0 {
		return ""
	}
	return fmt.Sprintf(" of %d", whole)
}

// classify finds the kind of an error of the network, and words for it.
func classify(err error, now time.Time) Trouble {
	t := Trouble{Err: innermost(err)}
	say := func(kind Kind, format string, args ...any) Trouble {
		t.Kind, t.Text = kind, fmt.Sprintf(format, args...)
		return t
	}
	// What ended the attempt from our side comes first: the errors below it are its consequences.
	switch {
	case errors.Is(err, errDeadline):
		return say(Timeout, "no answer before the deadline")
	case errors.Is(err, errAttempt):
		return say(Timeout, "no answer in time: packets are dropped on the way, or the server hangs")
	case errors.Is(err, errLoop):
		return say(Loop, "%v", errLoop)
	case errors.Is(err, errInsecure):
		return say(Insecure, "%v", errInsecure)
	}
	if trouble, ok := classifyTLS(t, err, now); ok {
		return trouble
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		switch {
		case dns.IsNotFound:
			return say(NoName, "no such name: %s", dns.Name)
		case strings.Contains(dns.Err, "connection refused"):
			return say(NoName, "no resolver configured, or it refuses: cannot look up %s", dns.Name)
		}
		return say(NoName, "the resolver does not answer: cannot look up %s", dns.Name)
	}
	proxy := ""
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "proxyconnect" {
		proxy = "the proxy: "
	}
	timeout, _ := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return say(Refused, "%sconnection refused: nothing listens there (yet)", proxy)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EADDRNOTAVAIL):
		return say(Unreachable, "%sno route: the network is not up, or of another address family", proxy)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return say(Closed, "%saccepted, then closed without an answer: a load balancer or proxy without a backend?", proxy)
	case errors.Is(err, http.ErrSchemeMismatch):
		return say(BadTLS, "answers in plain HTTP where TLS was expected; check scheme and port")
	case timeout != nil && timeout.Timeout():
		return say(Timeout, "%sno answer in time: packets are dropped on the way, or the server hangs", proxy)
	}
	text := innermost(err).Error()
	for _, broken := range []string{"malformed", "exceeded", "headers", "transport got", "missing status"} {
		if strings.Contains(text, broken) {
			return say(Unexpected, "not an answer in HTTP: %.120s", text)
		}
	}
	return say(Network, "%s%.200s", proxy, text)
}

func classifyTLS(t Trouble, err error, now time.Time) (Trouble, bool) {
	say := func(kind Kind, format string, args ...any) (Trouble, bool) {
		t.Kind, t.Text = kind, fmt.Sprintf(format, args...)
		return t, true
	}
	date := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		if now.Before(invalid.Cert.NotBefore) {
			return say(NotYetValid, "the certificate of %q is not valid before %s, and this machine's clock says %s; waiting for the clock",
				invalid.Cert.Subject.CommonName, date(invalid.Cert.NotBefore), date(now))
		}
		return say(Expired, "the certificate of %q expired at %s (this machine's clock says %s); renew it, or set the clock",
			invalid.Cert.Subject.CommonName, date(invalid.Cert.NotAfter), date(now))
	}
	if unknown, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		issuer := "an issuer that is not named"
		if unknown.Cert != nil {
			issuer = fmt.Sprintf("%q", unknown.Cert.Issuer.CommonName)
		}
		return say(UnknownCA, "the certificate was issued by %s, which is none of the CAs given; take the CA that issued it", issuer)
	}
	if name, ok := errors.AsType[x509.HostnameError](err); ok {
		return say(WrongName, "the certificate is not for %s but for %s", name.Host, namesOf(name.Certificate))
	}
	if invalid, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return say(UnknownCA, "the certificate does not verify: %v", invalid.Err)
	}
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return say(BadTLS, "does not speak TLS: %s; check scheme and port", record.Msg)
	}
	if alert, ok := errors.AsType[tls.AlertError](err); ok {
		return say(BadTLS, "ends the TLS handshake: %v", alert)
	}
	if strings.Contains(err.Error(), "tls: ") && !errors.Is(err, syscall.ECONNRESET) {
		return say(BadTLS, "no TLS: %.120s", innermost(err).Error())
	}
	return t, false
}

func namesOf(c *x509.Certificate) string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "no name at all"
	}
	return strings.Join(names[:min(5, len(names))], ", ")
}
