// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
	"github.com/mcsnap/mcsnap/ignition-stub/fetch/fetchtest"
)

// hostile says for each row what ends a fetch that meets it for ever: the kind, or "" where it still arrives. A row
// that is not named is met until the deadline, with the kind unavailable. Met twice and then no more, every row that is
// tried again arrives.
var hostile = map[string]fetch.Kind{
	"refuses the connection":         fetch.Refused,
	"accepts, then resets":           fetch.Closed,
	"accepts, then closes":           fetch.Closed,
	"accepts, then says nothing":     fetch.Timeout,
	"speaks plain HTTP":              fetch.BadTLS,
	"certificate expired":            fetch.Expired,
	"certificate not yet valid":      fetch.NotYetValid,
	"certificate for another name":   fetch.WrongName,
	"certificate of an unknown CA":   fetch.UnknownCA,
	"hangs before the headers":       fetch.Timeout,
	"endless headers":                fetch.Unexpected,
	"something that is not HTTP":     fetch.Unexpected,
	"hangs in the body":              fetch.Stalled,
	"drips a byte a second":          fetch.Stalled,
	"promises more than it sends":    fetch.Cut,
	"sends more than it promised":    fetch.BadDigest,
	"promises 2 GiB":                 fetch.TooLarge,
	"a body without end":             fetch.TooLarge,
	"other bytes of the same length": fetch.BadDigest,
	"an error page with 200":         fetch.BadDigest,
	"200 and nothing":                fetch.Empty,
	"compresses unasked":             fetch.Unexpected,
	"redirects in a loop":            fetch.Loop,
	"redirects to another host":      "",
	"redirects out of TLS":           fetch.Insecure,
	"cuts the body at 0/8":           fetch.Cut, "cuts the body at 1/8": fetch.Cut, "cuts the body at 2/8": fetch.Cut,
	"cuts the body at 3/8": fetch.Cut, "cuts the body at 4/8": fetch.Cut, "cuts the body at 5/8": fetch.Cut,
	"cuts the body at 6/8": fetch.Cut, "cuts the body at 7/8": fetch.Cut,
	"201": fetch.Unexpected, "202": fetch.Unexpected, "204": fetch.Unexpected, "206": fetch.Unexpected, "304": fetch.Unexpected,
	"400": fetch.Rejected, "401": fetch.Unauthorized, "403": fetch.Unauthorized, "404": fetch.NotFound,
	"408": fetch.Busy, "429": fetch.Busy, "429, Retry-After: 1": fetch.Busy, "429, Retry-After: 864000": fetch.Busy,
	"429, Retry-After: soon": fetch.Busy,
}

var (
	notAgain = []fetch.Kind{fetch.Rejected, fetch.TooLarge, fetch.Insecure}
	fewTries = []fetch.Kind{fetch.Expired, fetch.UnknownCA, fetch.WrongName, fetch.BadTLS, fetch.Unauthorized, fetch.NotFound,
		fetch.Unexpected, fetch.Loop, fetch.Empty, fetch.BadDigest}
)

func hostileOptions(s *fetchtest.Server, deadline time.Duration) fetch.Options {
	o := quick(fetch.Options{
		CA: s.CA, Deadline: deadline, AttemptTimeout: time.Second, StallTimeout: 300 * time.Millisecond,
		MaxBytes: 1 << 20, BackoffMin: 10 * time.Millisecond, BackoffMax: 50 * time.Millisecond, RetryAfterMax: 50 * time.Millisecond,
		Header: http.Header{"Authorization": {"Bearer " + fetchtest.Token}, "X-Auth": {fetchtest.Token}},
	})
	o.Sleep = nil
	return o
}

func TestHostileServer(t *testing.T) {
	for _, row := range fetchtest.Rows {
		want, named := hostile[row.Name]
		if !named {
			want = fetch.Unavailable
		}
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			t.Run("for ever", func(t *testing.T) {
				s := fetchtest.Start(t, row, fetchtest.ForEver, document)
				deadline := 900 * time.Millisecond // for those that would go on
				if slices.Contains(fewTries, want) {
					deadline = 20 * time.Second
				}
				result, err := newFetcher(t, hostileOptions(s, deadline)).Get(t.Context(), fetch.Request{URLs: []string{s.URL}, Digest: s.Digest})
				if s.Leaked() {
					t.Error("the token came to another host")
				}
				if want == "" {
					if err != nil || !bytes.Equal(result.Body, document) {
						t.Fatalf("%v, want the document", err)
					}
					return
				}
				gaveUp := wantKind(t, err, want)
				if gaveUp == nil {
					return
				}
				if strings.Contains(err.Error(), fetchtest.Token) || strings.Contains(err.Error(), "\n") {
					t.Errorf("not one line without secrets: %v", err)
				}
				if gaveUp.Verification() != (want == fetch.BadDigest) {
					t.Errorf("a matter of verification: %v", gaveUp.Verification())
				}
			})
			t.Run("twice", func(t *testing.T) {
				s := fetchtest.Start(t, row, 2, document)
				result, err := newFetcher(t, hostileOptions(s, 20*time.Second)).Get(t.Context(), fetch.Request{URLs: []string{s.URL}, Digest: s.Digest})
				if slices.Contains(notAgain, want) {
					wantKind(t, err, want)
					return
				}
				if err != nil || !bytes.Equal(result.Body, document) {
					t.Fatalf("%v, want the document", err)
				}
			})
		})
	}
}

// A page that is whole, but not what was asked for, is known where there is a Check and no digest.
func TestErrorPageIsNotTheDocument(t *testing.T) {
	s := fetchtest.Start(t, fetchtest.Find(t, "an error page with 200"), 2, []byte(`{"ignition":{}}`))
	request := fetch.Request{URLs: []string{s.URL}, Check: func(body []byte) error {
		if !json.Valid(body) {
			return errors.New("not JSON")
		}
		return nil
	}}
	result, err := newFetcher(t, hostileOptions(s, 20*time.Second)).Get(t.Context(), request)
	if err != nil || result.Attempts != 3 {
		t.Fatalf("%+v, %v; want the third answer", result, err)
	}
}

// Field case 45: a machine whose clock is behind waits for it; field case 46: an unknown CA is named.
func TestCertificateTroubleIsNamed(t *testing.T) {
	for row, says := range map[string]string{
		"certificate not yet valid":    "this machine's clock says",
		"certificate expired":          "expired at",
		"certificate of an unknown CA": `issued by "a stranger"`,
		"certificate for another name": "not for 127.0.0.1 but for api-int.other.example.com",
	} {
		s := fetchtest.Start(t, fetchtest.Find(t, row), fetchtest.ForEver, document)
		_, err := newFetcher(t, hostileOptions(s, time.Second)).Get(t.Context(), fetch.Request{URLs: []string{s.URL}})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q in it", row, err, says)
		}
	}
}

// docs/fetch-behaviour.md has every row and every kind. What stands in the rows is measured by `make e2e`.
func TestPageIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/fetch-behaviour.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range fetchtest.Rows {
		if !bytes.Contains(page, []byte("| "+row.Name+" | ")) {
			t.Errorf("no row %q", row.Name)
		}
	}
	kinds := []fetch.Kind{fetch.NoName, fetch.Refused, fetch.Unreachable, fetch.Timeout, fetch.Closed, fetch.Cut, fetch.Stalled, fetch.NotYetValid,
		fetch.Unavailable, fetch.Busy, fetch.Network, fetch.BadContent}
	for _, kind := range slices.Concat(kinds, fewTries, notAgain) {
		if !bytes.Contains(page, []byte("`"+string(kind)+"`")) {
			t.Errorf("no kind %q", kind)
		}
	}
}
