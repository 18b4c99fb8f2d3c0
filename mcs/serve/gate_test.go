// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// tokens is an Authenticator that knows a few tokens; the token "away" cannot be judged.
type tokens map[string]bool

func (k tokens) Authenticate(_ context.Context, token string) (bool, error) {
	if token == "away" {
		return false, errors.New("the API server is away")
	}
	return k[token], nil
}

// Field cases 57 (addresses as the kernel writes them) and 80 (who may have a config).
func TestGate(t *testing.T) {
	joined := map[string]bool{"10.0.0.9": true}
	known := func(a netip.Addr) bool { return joined[a.String()] }
	for _, c := range []struct {
		name, remote string
		header       []string
		gate         Gate
		code         string
		status       int // when the gate is final
	}{
		{"no rule", "10.0.0.7:1", nil, Gate{}, "", 0},
		{"within a range", "10.0.0.7:1", nil, Gate{Allow: prefixes("10.0.0.0/8")}, "", 0},
		{"outside of it", "11.0.0.7:1", nil, Gate{Allow: prefixes("10.0.0.0/8")}, "address", 403},
		{"denied within what is allowed", "10.128.0.7:1", nil, Gate{Allow: prefixes("10.0.0.0/8"), Deny: prefixes("10.128.0.0/14")}, "address", 403},
		{"a scoped address", "[fe80::1%ens3]:42692", nil, Gate{Allow: prefixes("fe80::/10")}, "", 0},
		{"IPv4 over a dual-stack socket", "[::ffff:10.0.0.7]:1", nil, Gate{Allow: prefixes("10.0.0.0/8")}, "", 0},
		{"an address that is none", "@", nil, Gate{Deny: prefixes("10.0.0.0/8")}, "address", 403},
		{"a node that has joined", "10.0.0.9:1", nil, Gate{Joined: known}, "joined", 403},
		{"a node that was deleted", "10.0.0.8:1", nil, Gate{Joined: known}, "", 0},
		{"a good token", "1.1.1.1:1", []string{"Bearer good"}, Gate{Tokens: tokens{"good": true}}, "", 0},
		{"a scheme in lower case", "1.1.1.1:1", []string{"bearer good"}, Gate{Tokens: tokens{"good": true}}, "", 0},
		{"a bad token", "1.1.1.1:1", []string{"Bearer bad"}, Gate{Tokens: tokens{"good": true}}, "bad-token", 401},
		{"no token", "1.1.1.1:1", nil, Gate{Tokens: tokens{"good": true}}, "no-token", 401},
		{"another scheme", "1.1.1.1:1", []string{"Basic good"}, Gate{Tokens: tokens{"good": true}}, "no-token", 401},
		{"two tokens", "1.1.1.1:1", []string{"Bearer good", "Bearer bad"}, Gate{Tokens: tokens{"good": true}}, "no-token", 401},
		{"a reviewer that is away", "1.1.1.1:1", []string{"Bearer away"}, Gate{Tokens: tokens{}}, "reviewer-away", 503},
		{"a good token from a bad address", "1.1.1.1:1", []string{"Bearer good"}, Gate{Tokens: tokens{"good": true}, Allow: prefixes("10.0.0.0/8")}, "address", 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/config/worker", nil)
			r.RemoteAddr = c.remote
			for _, value := range c.header {
				r.Header.Add("Authorization", value)
			}
			for _, final := range []bool{false, true} {
				c.gate.Final = final
				f := c.gate.check(r)
				switch {
				case f == nil && c.code != "", f != nil && f.code != c.code:
					t.Errorf("refusal %+v, want %q", f, c.code)
				case f != nil && final && f.status != c.status, f != nil && !final && f.status != 503:
					t.Errorf("final %v: status %d, want %d or 503", final, f.status, c.status)
				}
			}
		})
	}
}

// Field case 80: off, log and enforce; and a node that is deleted may be provisioned again.
func TestGateModes(t *testing.T) {
	joined := map[string]bool{"192.0.2.1": true} // httptest's client
	gate := Gate{Joined: func(a netip.Addr) bool { return joined[a.String()] }, Final: true, LogOnly: true}
	f := newFixture(t, func(c *Config) { c.Gate = gate })
	if r := f.do("GET", "/config/worker"); r.StatusCode != 200 {
		t.Errorf("log mode: %d", r.StatusCode)
	}
	if n := f.counter(t, "mcsnap_gate_would_refuse_total", "joined"); n != 1 {
		t.Errorf("log mode counted %v", n)
	}
	f.cfg.Gate.LogOnly = false
	if r := f.do("GET", "/config/worker"); r.StatusCode != 403 {
		t.Errorf("enforced: %d", r.StatusCode)
	}
	delete(joined, "192.0.2.1")
	if r := f.do("GET", "/config/worker"); r.StatusCode != 200 {
		t.Errorf("after the node was deleted: %d", r.StatusCode)
	}
	f.cfg.Gate = Gate{}
	if r := f.do("GET", "/config/worker"); r.StatusCode != 200 {
		t.Errorf("off: %d", r.StatusCode)
	}
}
