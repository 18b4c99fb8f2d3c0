// SPDX-License-Identifier: Apache-2.0

package fetch

import "net/http"

// Kind is a class of trouble. What is done about it hangs on the kind alone.
type Kind string

// The kinds, by how they are met.
const (
	// Until the deadline: what ends by itself on a machine that boots.

	NoName      Kind = "name"          // the name is not known, or the resolver does not answer
	Refused     Kind = "refused"       // nothing listens, or a packet filter says so
	Unreachable Kind = "unreachable"   // no route: the network is not up
	Timeout     Kind = "timeout"       // connection, handshake or headers took too long
	Closed      Kind = "closed"        // accepted, then closed before an answer
	Cut         Kind = "cut"           // the body ended before its length, or the connection broke in it
	Stalled     Kind = "stalled"       // the body stopped coming
	NotYetValid Kind = "not yet valid" // the certificate begins in what this machine takes for the future
	Unavailable Kind = "unavailable"   // 5xx
	Busy        Kind = "busy"          // 408, 421, 425, 429
	Network     Kind = "network"       // anything else of the network's

	// A few tries (Options.Tries), since it may be one server of several, or a moment of a roll-out.

	Expired      Kind = "expired"      // the certificate's time is over
	UnknownCA    Kind = "unknown CA"   // the certificate descends from none of the CAs
	WrongName    Kind = "wrong name"   // the certificate is for other names
	BadTLS       Kind = "TLS"          // no TLS spoken, no common version, an alert
	Unauthorized Kind = "unauthorized" // 401, 403, 407
	NotFound     Kind = "not found"    // 404
	Unexpected   Kind = "unexpected"   // an answer that is neither 200 nor an error, not HTTP, or encoded unasked
	Loop         Kind = "redirects"    // more than ten
	Empty        Kind = "empty"        // a body of no bytes
	BadDigest    Kind = "digest"       // whole, and not the bytes of the digest
	BadContent   Kind = "content"      // whole, and refused by the request's Check

	// Not again: asking the same server the same will not help.

	Rejected Kind = "rejected"  // any other 4xx
	TooLarge Kind = "too large" // more bytes than Options.MaxBytes
	Insecure Kind = "insecure"  // a redirect from https to http
)

type patience int

const (
	untilDeadline patience = iota
	fewTries
	notAgain
)

func (k Kind) patience() patience {
	switch k {
	case Expired, UnknownCA, WrongName, BadTLS, Unauthorized, NotFound, Unexpected, Loop, Empty, BadDigest, BadContent:
		return fewTries
	case Rejected, TooLarge, Insecure:
		return notAgain
	}
	return untilDeadline
}

// kindOfStatus is the documented table of answers that are not the document.
func kindOfStatus(status int) Kind {
	switch {
	case status >= 500:
		return Unavailable
	case status == http.StatusRequestTimeout, status == http.StatusMisdirectedRequest, status == http.StatusTooEarly,
		status == http.StatusTooManyRequests:
		return Busy
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return Unauthorized
	case status == http.StatusNotFound:
		return NotFound
	case status >= 400:
		return Rejected
	}
	return Unexpected
}
