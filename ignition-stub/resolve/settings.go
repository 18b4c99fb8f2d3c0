// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"fmt"
	"net/url"

	"github.com/coreos/ignition/v2/config/v3_6/types"
	"golang.org/x/net/http/httpproxy"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
)

// settings are what configs say about how others are fetched. Ignition's timeouts are not among them: they bound a
// client that gives up, which this one is built not to do.
type settings struct {
	ca    []byte
	proxy func(*url.URL) (*url.URL, error)
}

// use takes up the settings of a config. Its CAs may be remote themselves: those are fetched as the settings were. A
// config without CAs leaves those there are, as in Ignition's fetch stage.
func (r *resolution) use(config types.Config) error {
	next := settings{proxy: proxyOf(config.Ignition.Proxy)}
	for i, reference := range config.Ignition.Security.TLS.CertificateAuthorities {
		what := fmt.Sprintf("CA ignition.security.tls.certificateAuthorities.%d", i)
		bundle, err := r.get(reference, what, nil, func(body []byte) error {
			_, err := fetch.ParseCertificates(body)
			return err
		})
		if err != nil {
			return err
		}
		next.ca = append(append(next.ca, bundle...), '\n')
	}
	if len(next.ca) == 0 {
		next.ca = r.settings.ca
	}
	r.settings = next
	return nil
}

// apply overrides options of a fetch. As in Ignition, a config's CAs come to the system's and do not replace them.
func (s settings) apply(o *fetch.Options) {
	if len(s.ca) > 0 {
		o.CA, o.SystemCAs = s.ca, true
	}
	if s.proxy != nil {
		o.Proxy = s.proxy
	}
}

// proxyOf is nil where a config names no proxy: then the environment's counts.
func proxyOf(p types.Proxy) func(*url.URL) (*url.URL, error) {
	if p.HTTPProxy == nil && p.HTTPSProxy == nil {
		return nil
	}
	config := httpproxy.Config{HTTPProxy: text(p.HTTPProxy), HTTPSProxy: text(p.HTTPSProxy)}
	for i, host := range p.NoProxy {
		if i > 0 {
			config.NoProxy += ","
		}
		config.NoProxy += string(host)
	}
	return config.ProxyFunc()
}
