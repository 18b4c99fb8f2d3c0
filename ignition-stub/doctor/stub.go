// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/mcsnap/mcsnap/ignition-stub/stub"
)

// pointer is what 2.2 and 3.x stubs have in common.
type pointer struct {
	Ignition struct {
		Version stub.Version
		Config  struct {
			Merge, Append []reference
			Replace       *reference
		}
		Security struct {
			TLS struct {
				CertificateAuthorities []reference
			}
		}
		Timeouts struct {
			HTTPResponseHeaders *int
		}
		Proxy struct {
			HTTPProxy, HTTPSProxy string
			NoProxy               []string
		}
	}
}

type reference struct {
	Source, Compression string
	HTTPHeaders         []struct {
		Name  string
		Value string
	}
	Verification struct{ Hash string }
}

// target is where a machine with the stub will ask.
type target struct {
	reference
	url    *url.URL
	header http.Header
	token  string
	proxy  *url.URL

	addresses []string // of the server, or of the proxy
}

func (e *exam) lookAtStub() bool {
	warnings, err := stub.Validate(e.raw)
	if err != nil {
		return e.fail("stub", fmt.Sprintf("is not a config that Ignition reads: %v", err), "make it anew with ignition-stub render")
	}
	if err := json.Unmarshal(e.raw, &e.stub); err != nil {
		return e.fail("stub", "is not JSON of the form Ignition reads", "make it anew with ignition-stub render")
	}
	config := e.stub.Ignition.Config
	references := slices.Concat(config.Merge, config.Append)
	if config.Replace != nil && config.Replace.Source != "" {
		references = []reference{*config.Replace}
	}
	for _, r := range references {
		if u, err := url.Parse(r.Source); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
			e.target.reference, e.target.url = r, u
			break
		}
	}
	if e.target.url == nil {
		return e.fail("stub", "names no server: it has no https source in ignition.config.merge", "if this is the whole config, look at it with ignition-stub inspect")
	}
	e.readHeaders()
	e.readProxy()
	text := fmt.Sprintf("spec %s for %s; read by %s", e.stub.Ignition.Version, bare(e.target.url), e.stub.Ignition.Version.ReadBy())
	switch {
	case config.Replace != nil && config.Replace.Source != "":
		e.warn("stub", text, "it replaces: the CAs in it are lost for files the config names; render it anew, with merge")
	case e.target.url.Scheme == "http":
		e.warn("stub", text, "plain http: anyone on the way reads and changes the config; take https")
	case len(warnings) > 0:
		e.warn("stub", text, "Ignition warns: "+strings.Join(warnings, "; "))
	default:
		e.say("stub", OK, text)
	}
	e.weigh()
	return e.judgeToken()
}

func (e *exam) readHeaders() {
	e.target.header = http.Header{}
	for _, h := range e.target.HTTPHeaders {
		e.target.header.Set(h.Name, h.Value)
		if name, token, ok := strings.Cut(h.Value, " "); ok && strings.EqualFold(name, "Bearer") {
			e.target.token = token
		} else if e.target.token == "" {
			e.target.token = h.Value
		}
	}
}

func (e *exam) readProxy() {
	p := e.stub.Ignition.Proxy
	proxy := httpproxy.Config{HTTPProxy: p.HTTPProxy, HTTPSProxy: p.HTTPSProxy, NoProxy: strings.Join(p.NoProxy, ",")}
	e.target.proxy, _ = proxy.ProxyFunc()(e.target.url)
}

func (e *exam) weigh() {
	size := len(e.raw)
	if e.Platform != "" {
		limit, known := stub.Platforms[e.Platform]
		switch used, fits := limit.Fits(size); {
		case !known:
			e.fail("size", fmt.Sprintf("platform %.30q is not known", e.Platform), "want one of "+strings.Join(stub.PlatformNames(), ", "))
		case !fits:
			e.fail("size", fmt.Sprintf("%d bytes, and %s takes %d", used, e.Platform, limit.Bytes), "move snippets into the config the server sends; ignition-stub render --platform names the largest part")
		default:
			e.say("size", OK, fmt.Sprintf("%d bytes, within the limit of %s", used, e.Platform))
		}
		return
	}
	var over []string
	for _, name := range stub.PlatformNames() {
		if _, fits := stub.Platforms[name].Fits(size); !fits {
			over = append(over, name)
		}
	}
	if text := fmt.Sprintf("%d bytes", size); size > 16384 {
		e.warn("size", text+", too much for "+strings.Join(over, ", "), "name the --platform to know for certain")
	} else {
		e.say("size", OK, text)
	}
}

func (e *exam) judgeToken() bool {
	if e.target.token == "" {
		e.say("token", None, "none in the stub")
		return true
	}
	expires, known := stub.Expiry(e.target.token)
	left := expires.Sub(e.Now())
	switch {
	case !known:
		e.say("token", OK, "has one, that does not say when it expires")
	case left <= 0:
		return e.fail("token", "expired at "+expires.UTC().Format(time.RFC3339), "make a new token and render the stub again")
	case left < e.BootBudget:
		e.warn("token", fmt.Sprintf("expires in %v", left.Round(time.Second)), fmt.Sprintf("a machine may need %v until it has fetched: make one that lives longer", e.BootBudget))
	default:
		e.say("token", OK, fmt.Sprintf("expires in %v", left.Round(time.Minute)))
	}
	return true
}

func bare(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return shown.String()
}
