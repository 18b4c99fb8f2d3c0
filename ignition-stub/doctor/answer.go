// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mcsnap/mcsnap/ignition-stub/stub"
)

const (
	headerTimeout = 10 * time.Second // Ignition's own
	largestBody   = 64 << 20
)

// answer is what the server said to the stub's own request.
type answer struct {
	header http.Header
	body   []byte
}

func (e *exam) ask() bool {
	began := time.Now()
	response, err := e.request(http.MethodGet, e.stub.Ignition.Version)
	if err != nil {
		return e.fail("answer", "none: "+quiet(err), "machines retry this for ever; look at the server's log")
	}
	defer response.Body.Close()
	took := time.Since(began)
	body, err := io.ReadAll(io.LimitReader(response.Body, largestBody+1))
	e.answer = answer{response.Header, body}
	e.judgeLatency(took)
	e.judgeClock(response.Header.Get("Date"))
	status := response.StatusCode
	text := fmt.Sprintf("%d %s; %s", status, http.StatusText(status), taken(status))
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		remedy := "the server wants a token: render the stub with --token-file"
		if e.target.token != "" {
			remedy = "the server does not accept the token in the stub: make a new one and render again"
		}
		return e.fail("answer", text, remedy)
	case status >= 300 && status < 400:
		return e.fail("answer", text+"; to "+bareText(response.Header.Get("Location")), "render the stub with the final URL")
	case status != http.StatusOK:
		if line := firstLine(body); line != "" {
			text += `; it says "` + line + `"`
		}
		return e.fail("answer", text, "the reason is the server's; its log has more")
	case err != nil:
		return e.fail("answer", "200, and a body that is cut short: Ignition fails at once", "look for a proxy or load balancer that ends connections early")
	case len(body) > largestBody:
		return e.fail("answer", fmt.Sprintf("200, and more than %d bytes", largestBody), "is it the config server that answers there?")
	case len(body) == 0:
		return e.fail("answer", "200, and nothing: Ignition takes it for an empty config and boots a bare machine", "is it the config server that answers there?")
	case response.Header.Get("Content-Encoding") != "":
		return e.fail("answer", "200, encoded unasked: Ignition does not decode it", "look for a proxy that compresses")
	}
	e.say("answer", OK, fmt.Sprintf("200, %d bytes", len(body)))
	return true
}

// taken is how Ignition takes a status (measured, see docs/fetch-behaviour.md).
func taken(status int) string {
	switch {
	case status == http.StatusOK:
		return "Ignition takes it"
	case status == http.StatusNoContent:
		return "Ignition takes it for an empty config, and boots a bare machine"
	case status >= 500:
		return "Ignition retries for ever, every 5 s"
	case status >= 300 && status < 400:
		return "Ignition follows it, without the stub's headers"
	}
	return "Ignition fails at once, and the machine ends in the emergency shell"
}

func (e *exam) judgeLatency(took time.Duration) {
	limit := headerTimeout
	if seconds := e.stub.Ignition.Timeouts.HTTPResponseHeaders; seconds != nil && *seconds > 0 {
		limit = time.Duration(*seconds) * time.Second
	}
	text := fmt.Sprintf("%v until the headers, Ignition waits %v", took.Round(time.Millisecond), limit)
	switch {
	case took >= limit:
		e.fail("latency", text, "machines give each try up and begin again; the server must answer sooner, 503 if it must")
	case took >= limit/2:
		e.warn("latency", text, "little is left for a busier hour")
	default:
		e.say("latency", OK, text)
	}
}

func (e *exam) judgeClock(date string) {
	server, err := http.ParseTime(date)
	if err != nil {
		e.say("clock", None, "the server does not say what time it has")
		return
	}
	skew := e.Now().Sub(server).Round(time.Second)
	switch {
	case skew.Abs() >= time.Hour:
		e.fail("clock", fmt.Sprintf("this host and the server differ by %v", skew.Abs()), "set the clock that is wrong: certificates and tokens depend on it")
	case skew.Abs() > time.Minute:
		e.warn("clock", fmt.Sprintf("this host and the server differ by %v", skew.Abs()), "set the clock that is wrong")
	default:
		e.say("clock", OK, "this host and the server agree to the minute")
	}
}

// request asks as a machine would whose Ignition knows that version, through no redirect.
func (e *exam) request(method string, version stub.Version) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(e.ctx, 2*e.Timeout)
	request, err := http.NewRequestWithContext(ctx, method, e.target.url.String(), nil)
	if err != nil {
		cancel()
		return nil, err
	}
	request.Header = e.target.header.Clone()
	request.Header.Set("Accept", fmt.Sprintf("application/vnd.coreos.ignition+json;version=%s, */*;q=0.1", version))
	request.Header.Set("Accept-Encoding", "identity")
	response, err := e.transport(&tls.Config{RootCAs: e.trust.roots, Time: e.Now}).RoundTrip(request)
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &body{response.Body, cancel}
	return response, nil
}

type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *body) Close() error { defer b.cancel(); return b.ReadCloser.Close() }

func (e *exam) askForVersions() bool {
	var yes, no []string
	own := true
	for _, version := range stub.Versions {
		response, err := e.request(http.MethodHead, version)
		ok := err == nil && response.StatusCode == http.StatusOK
		if err == nil {
			response.Body.Close()
		}
		short := strings.TrimSuffix(string(version), ".0")
		if ok {
			yes = append(yes, short)
			continue
		}
		if err == nil {
			short += fmt.Sprintf(" (%d)", response.StatusCode)
		}
		no = append(no, short)
		own = own && version != e.stub.Ignition.Version
	}
	switch text := "given for " + orNone(yes); {
	case !own:
		e.fail("versions", text+"; not for "+strings.Join(no, " "), "the stub's own version is among those the server does not give")
	case len(no) > 0:
		e.say("versions", OK, text+"; not for "+strings.Join(no, " "))
	default:
		e.say("versions", OK, text)
	}
	return true
}

func firstLine(body []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(body[:min(len(body), 200)])), "\n")
	if strings.HasPrefix(line, "<") {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == '"' {
			return -1
		}
		return r
	}, line)
}
