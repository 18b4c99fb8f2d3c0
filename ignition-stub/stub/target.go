// SPDX-License-Identifier: Apache-2.0

package stub

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

const configPath = "/config/"

// target is the URL of the config a machine fetches.
func (o Options) target() (string, error) {
	if o.URL == "" {
		return "", wrong("url", "none given; name the server, like https://api-int.example.com:22623")
	}
	text, err := bracket(o.URL)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", wrong("url", "not a URL; want https://host:port, an IPv6 address in brackets")
	case u.Scheme != "https" && u.Scheme != "http":
		return "", wrong("url", "scheme %.20q: want https", u.Scheme)
	case u.Hostname() == "":
		return "", wrong("url", "no host in it; want https://host:port")
	case u.User != nil:
		return "", wrong("url", "a password in a URL is shown in logs; give a token instead")
	case u.Fragment != "":
		return "", wrong("url", "the part after # never reaches a server; leave it away")
	case u.Scheme == "http" && o.Token != "":
		return "", wrong("url", "over plain http anyone on the way reads the token; take https")
	}
	if u.Path == "" || u.Path == "/" {
		if o.Pool == "" {
			return "", wrong("pool", "the URL names no config; name the pool, or give the whole URL ending in /config/<pool>")
		}
		if strings.ContainsAny(o.Pool, "/?#%") || !oneWord(o.Pool) {
			return "", wrong("pool", "%.60q is not the name of a pool", o.Pool)
		}
		u.Path = configPath + o.Pool
	} else if o.Pool != "" && strings.TrimSuffix(u.Path, ".gz") != configPath+o.Pool {
		return "", wrong("pool", "the URL already names %s; leave one of the two away", u.Path)
	}
	if strings.HasPrefix(u.Path, configPath) {
		name, packed := strings.CutSuffix(strings.TrimPrefix(u.Path, configPath), ".gz")
		switch {
		case name == "" || strings.Contains(name, "/"):
			return "", wrong("url", "%.80s: want /config/ and the name of a pool, no more", u.Path)
		case packed && !o.Gzip:
			return "", wrong("url", "ends in .gz; ask for gzip, or Ignition takes the compressed bytes for a config")
		case o.Gzip && !packed:
			u.Path += ".gz"
		}
	}
	return u.String(), nil
}

// bracket puts an IPv6 address into the brackets a URL wants, when there is one way to read it.
func bracket(text string) (string, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return "", wrong("url", "no scheme; want https://%.80s", text)
	}
	host, path := rest, ""
	if at := strings.IndexAny(rest, "/?#"); at >= 0 {
		host, path = rest[:at], rest[at:]
	}
	if strings.Count(host, ":") < 2 || strings.HasPrefix(host, "[") {
		return text, nil
	}
	last := strings.LastIndex(host, ":")
	_, whole := netip.ParseAddr(host)
	_, before := netip.ParseAddr(host[:last])
	switch {
	case whole == nil && before != nil:
		return scheme + "://[" + host + "]" + path, nil
	case whole != nil && before == nil:
		return scheme + "://" + net.JoinHostPort(host[:last], host[last+1:]) + path, nil
	case whole == nil:
		return "", wrong("url", "%.60s can be read in two ways; put the address into brackets, like https://[%s]:%s", host, host[:last], host[last+1:])
	}
	return "", wrong("url", "%.60s is no host; an IPv6 address stands in brackets, like https://[fd00::1]:22623", host)
}

// judgeTarget warns of a URL that tells secrets.
func (s *Stub) judgeTarget(target string) {
	u, err := url.Parse(target)
	if err != nil {
		return
	}
	if u.Scheme == "http" {
		s.warn("plain http: anyone on the way reads the config, which holds secrets, and can send another; take https")
	}
	for name := range u.Query() {
		for _, word := range []string{"token", "secret", "password", "key", "auth"} {
			if strings.Contains(strings.ToLower(name), word) {
				s.warn("the URL has a secret in its query, which servers and proxies log; give it with --token-file")
				return
			}
		}
	}
}
