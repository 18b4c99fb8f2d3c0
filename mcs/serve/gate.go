// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// An Authenticator judges bearer tokens. It is asked about every request to /config/ and /snapshot/.
type Authenticator interface {
	// Authenticate reports whether the token is good now. An error says that nobody can tell at the moment; it must
	// not quote the token.
	Authenticate(ctx context.Context, token string) (bool, error)
}

// Gate says who may have a config. The zero value lets everybody in, as Ignition deployments do.
//
// What the gate refuses gets a 503 and comes back: a token may become valid, a reviewer may return, a list may be
// mended, and a node that is told anything else is lost. Final makes it 401 and 403.
type Gate struct {
	// Tokens judges the bearer token; nil means that none is asked for.
	Tokens Authenticator
	// Allow lists the addresses that may ask; empty means all.
	Allow []netip.Prefix
	// Deny lists addresses that may not, such as the pod network. It wins over Allow.
	Deny []netip.Prefix
	// Joined reports whether an address belongs to a node that has joined already: whatever runs there has no
	// business with a new node's config. nil means that nothing is known of nodes.
	Joined func(netip.Addr) bool
	// Final refuses with 401 and 403 instead of 503.
	Final bool
	// LogOnly serves what the gate would refuse, and counts and logs it: for finding out what a rule would break.
	LogOnly bool
}

// reviewTime is how long a judgement may take. Ignition waits ten seconds for response headers.
const reviewTime = 4 * time.Second

// check returns why the request may not have a config, or nil.
func (g *Gate) check(r *http.Request) *refusal {
	if f := g.checkAddress(r.RemoteAddr); f != nil {
		return f
	}
	if g.Tokens == nil {
		return nil
	}
	token, ok := bearer(r.Header["Authorization"])
	if !ok {
		return g.refuse(http.StatusUnauthorized, "no-token",
			"no bearer token; render the stub with a token, it belongs into Ignition's httpHeaders as Authorization: Bearer")
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTime)
	defer cancel()
	good, err := g.Tokens.Authenticate(ctx, token)
	switch {
	case err != nil: // whatever Final says: the token may be good
		return notNow("reviewer-away", "the token cannot be judged now; it will be asked again")
	case !good:
		return g.refuse(http.StatusUnauthorized, "bad-token",
			"the bearer token is unknown or has expired; make a new one and render the stub again")
	}
	return nil
}

func (g *Gate) checkAddress(remote string) *refusal {
	if len(g.Allow) == 0 && len(g.Deny) == 0 && g.Joined == nil {
		return nil
	}
	addr, ok := clientAddr(remote)
	holds := func(p netip.Prefix) bool { return p.Contains(addr) }
	switch {
	case !ok:
		return g.refuse(http.StatusForbidden, "address", "the client's address cannot be read; reach the server directly")
	case slices.ContainsFunc(g.Deny, holds):
		return g.refuse(http.StatusForbidden, "address", "this address may not have a config; see --deny-cidr")
	case len(g.Allow) > 0 && !slices.ContainsFunc(g.Allow, holds):
		return g.refuse(http.StatusForbidden, "address", "this address may not have a config; see --allow-cidr")
	case g.Joined != nil && g.Joined(addr):
		return g.refuse(http.StatusForbidden, "joined", "a node with this address has joined; delete the Node object to provision it again")
	}
	return nil
}

func (g *Gate) refuse(final int, code, text string) *refusal {
	if g.Final {
		return &refusal{final, code, text}
	}
	return notNow(code, text)
}

// clientAddr reads the address of a connection ("[fe80::1%ens3]:42692", "10.0.0.7:42692") without its zone, and IPv4
// as IPv4 also when it came over a dual-stack socket.
func clientAddr(remote string) (netip.Addr, bool) {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}, false
	}
	return ap.Addr().WithZone("").Unmap(), true
}

// bearer takes the token out of the Authorization header. Several headers are none: readers would differ on which
// counts.
func bearer(values []string) (string, bool) {
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}
