// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

const maxRedirects = 10

var (
	errLoop     = errors.New("more than ten redirects; name the final URL")
	errInsecure = errors.New("redirected from https to http; not followed")
)

// checkRedirect follows ten redirects, none of them out of TLS. What was to be told to one host alone is not told to
// another, nor to anyone who comes after another: net/http would carry every header but a few over, and those few to
// subdomains too.
func (f *Fetcher) checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errLoop
	}
	if via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return errInsecure
	}
	first := via[0].URL
	left := false
	for _, hop := range append(via[1:len(via):len(via)], next) {
		left = left || hop.URL.Scheme != first.Scheme || !strings.EqualFold(hop.URL.Host, first.Host)
	}
	if left {
		for name := range next.Header {
			if !toldToAnyone[name] {
				next.Header.Del(name)
			}
		}
	}
	return nil
}

var toldToAnyone = map[string]bool{"Accept": true, "Accept-Encoding": true, "User-Agent": true, "Range": true, "If-Range": true}

func checkHeader(header http.Header) error {
	for name, values := range header {
		for _, value := range values {
			if name == "" || strings.ContainsAny(name, " \t\r\n:") || strings.ContainsAny(value, "\r\n\x00") {
				return &InputError{fmt.Sprintf("header %.40q", name), "a name is one word, a value one line"}
			}
		}
	}
	return nil
}
