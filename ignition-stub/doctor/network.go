// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// lookUp and connect look at the server, or at the proxy before it.
func (e *exam) lookUp() bool {
	u := e.hop()
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err == nil {
		e.say("name", None, host+" is an address")
		e.target.addresses = []string{host}
		return true
	}
	ctx, cancel := context.WithTimeout(e.ctx, e.Timeout)
	defer cancel()
	found, err := e.Resolver.LookupIPAddr(ctx, host)
	if err != nil || len(found) == 0 {
		remedy := "look at the record, and at the resolver that machines get from DHCP"
		if dns, ok := errors.AsType[*net.DNSError](err); ok && !dns.IsNotFound {
			remedy = "the resolver does not answer here; do machines get another one?"
		}
		return e.fail("name", fmt.Sprintf("%s has no address", host), remedy)
	}
	var four, six []string
	for _, ip := range found {
		if ip.IP.To4() != nil {
			four = append(four, ip.String())
		} else {
			six = append(six, ip.String())
		}
	}
	e.target.addresses = append(six, four...)
	e.say("name", OK, fmt.Sprintf("%s is v4 %s, v6 %s", host, orNone(four), orNone(six)))
	return true
}

func (e *exam) connect() bool {
	u := e.hop()
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	var good, bad []string
	for _, address := range e.target.addresses {
		began := time.Now()
		conn, err := (&net.Dialer{Timeout: min(e.Timeout, 5*time.Second)}).DialContext(e.ctx, "tcp", net.JoinHostPort(address, port))
		if err != nil {
			bad = append(bad, address+" "+why(err))
			continue
		}
		conn.Close()
		good = append(good, fmt.Sprintf("%s in %v", address, time.Since(began).Round(time.Millisecond)))
	}
	what := "port " + port
	if e.target.proxy != nil {
		what = "the proxy's port " + port
	}
	switch {
	case len(good) == 0:
		return e.fail("address", what+": "+strings.Join(bad, ", "), "is the server running, and does a firewall or a load balancer let machines through to it?")
	case len(bad) > 0:
		e.warn("address", fmt.Sprintf("%s: %s; but %s", what, strings.Join(good, ", "), strings.Join(bad, ", ")), "machines try the others too, each after a wait; take the dead address out of the name")
	default:
		e.say("address", OK, what+": "+strings.Join(good, ", "))
	}
	return true
}

// hop is the first machine on the way.
func (e *exam) hop() *url.URL {
	if e.target.proxy != nil {
		return e.target.proxy
	}
	return e.target.url
}

func why(err error) string {
	timeout, _ := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refuses: nothing listens"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "has no route from here"
	case timeout != nil && timeout.Timeout():
		return "does not answer: packets are dropped"
	}
	return "fails"
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, " ")
}
