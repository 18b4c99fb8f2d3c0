// SPDX-License-Identifier: Apache-2.0

// Package stub makes the small config that becomes a machine's user-data: it says where the real one is and whom to
// believe. It always merges and never replaces, since a replaced stub takes its own CAs away. What it makes has been
// through Ignition's own validator, depends on its options alone, and fits the platform.
//
// It asks nobody anything: whether the server answers is package doctor's matter.
package stub

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"
)

// Options say what a stub holds.
type Options struct {
	// Version is the spec version of the stub. Empty means [DefaultVersion].
	Version Version
	// URL is the server's, such as https://api-int.example.com:22623, or that of one config, such as
	// https://…/config/worker.
	URL string
	// Pool names the config when URL does not.
	Pool string
	// Gzip asks for the compressed config, <URL>.gz. From spec 3.1 on.
	Gzip bool

	// CAs are one or more bundles in PEM. None means the certificates of the operating system's image.
	CAs [][]byte
	// Token is shown to the server, as "Authorization: Bearer" unless AuthHeader names another header, and left on the
	// machine for the agent. It ends up readable in the user-data: take one that expires. From spec 3.1 on.
	Token      string
	AuthHeader string
	// BootBudget is how long a machine may take until it has fetched: a token that expires earlier is warned of.
	BootBudget time.Duration
	// Now is the time that tokens are judged at. Required with a Token.
	Now time.Time

	// HTTPResponseHeaders and HTTPTotal are Ignition's timeouts, in seconds. 0 leaves Ignition's: 10, and no limit.
	HTTPResponseHeaders, HTTPTotal int
	// HTTPProxy, HTTPSProxy and NoProxy are Ignition's proxy. From spec 3.1 on.
	HTTPProxy, HTTPSProxy string
	NoProxy               []string

	// Snippets are small configs that go over what the server sends: a host name, an SSH key.
	Snippets []Snippet

	// Platform is where the machine will run; its limit on user-data is kept. Empty means no limit.
	Platform string
}

// Snippet is an Ignition config of its own. Name is for messages, such as its file's name.
type Snippet struct {
	Name   string
	Config []byte
}

// Stub is user-data.
type Stub struct {
	Version  Version
	JSON     []byte // without a newline at its end
	Warnings []string
	Parts    []Part // what it is made of, largest first
}

// Part is one piece of a stub, with the bytes it adds to the whole.
type Part struct {
	Name  string
	Bytes int
}

// TokenPath is where the agent looks for the token. The file holds the token alone.
const TokenPath = "/etc/mcsnap/token"

// InputError says that an option cannot be what it is.
type InputError struct{ Field, Problem string }

func (e *InputError) Error() string { return e.Field + ": " + e.Problem }

func wrong(field, format string, args ...any) error {
	return &InputError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// Render makes a stub. The error is an [InputError] or a [TooLargeError].
func Render(o Options) (*Stub, error) {
	if o.Version == "" {
		o.Version = DefaultVersion
	}
	if !o.Version.known() {
		return nil, wrong("spec version", "%.20q is none of %s", string(o.Version), versionList())
	}
	s := &Stub{Version: o.Version}
	d := document{Ignition: ignition{Version: o.Version}}
	for _, step := range []func(Options, *document) error{
		s.addTarget, s.addToken, s.addSnippets, s.addCAs, s.addSettings,
	} {
		if err := step(o, &d); err != nil {
			return nil, err
		}
	}
	s.JSON = encode(d)
	warnings, err := Validate(s.JSON)
	if err != nil {
		return nil, err
	}
	s.Warnings = append(s.Warnings, warnings...)
	s.weigh(d)
	if err := s.fits(o.Platform); err != nil {
		return nil, err
	}
	return s, nil
}

// needs refuses what the spec version does not know.
func needs(o Options, field string, least Version) error {
	if o.Version < least {
		return wrong(field, "spec %s has no such thing; take %s or newer", o.Version, least)
	}
	return nil
}

func (s *Stub) addTarget(o Options, d *document) error {
	target, err := o.target()
	if err != nil {
		return err
	}
	at := reference{Source: target}
	s.judgeTarget(target)
	if o.Gzip {
		if err := needs(o, "gzip", V3_1); err != nil {
			return err
		}
		at.Compression = "gzip"
	}
	d.merge(at)
	return nil
}

func (s *Stub) addCAs(o Options, d *document) error {
	seen := map[string]bool{}
	for _, bundle := range o.CAs {
		certificates, err := parseCertificates(bundle)
		if err != nil {
			return err
		}
		for _, c := range certificates {
			if seen[string(c.Raw)] {
				continue
			}
			seen[string(c.Raw)] = true
			s.judge(c, o.Now)
			// One entry for each: Ignitions before 2.4 read the first certificate of a bundle alone. Encoded again,
			// since bundles carry text between their certificates.
			text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
			d.trust(reference{Source: dataURL(text), name: "CA " + c.Subject.CommonName})
		}
	}
	return nil
}

func (s *Stub) judge(c *x509.Certificate, now time.Time) {
	name := fmt.Sprintf("CA %q", c.Subject.CommonName)
	if !c.IsCA {
		s.warn("%s is not a CA but a server's certificate: machines will refuse the next one", name)
	}
	switch left := c.NotAfter.Sub(now); {
	case now.IsZero():
	case left <= 0:
		s.warn("%s expired at %s: no machine will believe it", name, c.NotAfter.UTC().Format(time.RFC3339))
	case left < 30*24*time.Hour:
		s.warn("%s expires in %.0f days, and user-data is seldom renewed: add its successor now", name, left.Hours()/24)
	}
}

func (s *Stub) addSettings(o Options, d *document) error {
	if o.HTTPResponseHeaders < 0 || o.HTTPTotal < 0 {
		return wrong("timeout", "less than nothing; want seconds, 0 for Ignition's own")
	}
	if o.HTTPResponseHeaders > 0 || o.HTTPTotal > 0 {
		d.Ignition.Timeouts = &timeouts{positive(o.HTTPResponseHeaders), positive(o.HTTPTotal)}
	}
	if o.HTTPProxy == "" && o.HTTPSProxy == "" && len(o.NoProxy) == 0 {
		return nil
	}
	if o.HTTPProxy == "" && o.HTTPSProxy == "" {
		return wrong("no-proxy", "without a proxy it means nothing; name the proxy too")
	}
	d.Ignition.Proxy = &proxy{o.HTTPProxy, o.HTTPSProxy, o.NoProxy}
	return needs(o, "proxy", V3_1)
}

func (s *Stub) warn(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}

func positive(seconds int) *int {
	if seconds == 0 {
		return nil
	}
	return &seconds
}
