// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
)

var document = []byte(strings.Repeat("the document, ", 5000))

func sha256Of(data []byte) string { return fmt.Sprintf("sha256-%x", sha256.Sum256(data)) }

// quick are options under which a test does not wait.
func quick(o fetch.Options) fetch.Options {
	o.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	if o.Deadline == 0 {
		o.Deadline = 10 * time.Second
	}
	o.Proxy = func(*url.URL) (*url.URL, error) { return nil, nil }
	return o
}

func newFetcher(t *testing.T, o fetch.Options) *fetch.Fetcher {
	t.Helper()
	f, err := fetch.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// serve answers the nth request (from 1) with the handler.
func serve(t *testing.T, handler func(n int, w http.ResponseWriter, r *http.Request)) *httptest.Server {
	t.Helper()
	var count atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler(int(count.Add(1)), w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestArrivesAtOnce(t *testing.T) {
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Accept-Encoding %q", got)
		}
		w.Write(document)
	})
	for _, digest := range []string{"", sha256Of(document), fmt.Sprintf("sha512-%x", sha512.Sum512(document))} {
		var last int64
		f := newFetcher(t, quick(fetch.Options{Progress: func(got, _ int64) { last = got }}))
		result, err := f.Get(t.Context(), fetch.Request{URLs: []string{server.URL}, Digest: digest})
		if err != nil || !bytes.Equal(result.Body, document) || result.Attempts != 1 || last != int64(len(document)) {
			t.Errorf("digest %q: %v, %v; progress to %d", digest, result, err, last)
		}
	}
}

// Field case 47: a private CA that was not given fails closed, and there is no way to switch that off.
func TestTrustsOnlyTheGivenCA(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(document) }))
	t.Cleanup(server.Close)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if _, err := newFetcher(t, quick(fetch.Options{CA: ca})).Get(t.Context(), fetch.Request{URLs: []string{server.URL}}); err != nil {
		t.Errorf("with the CA: %v", err)
	}
	_, err := newFetcher(t, quick(fetch.Options{})).Get(t.Context(), fetch.Request{URLs: []string{server.URL}})
	if gaveUp := wantKind(t, err, fetch.UnknownCA); gaveUp != nil && gaveUp.Attempts != 5 {
		t.Errorf("%d attempts, want 5", gaveUp.Attempts)
	}
}

// Retry-After is honoured, and capped (field: 864000 seconds); without it the pauses grow and are random.
func TestPauses(t *testing.T) {
	for asked, want := range map[string][]time.Duration{
		"":                              {250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 2 * time.Second},
		"3":                             {3375 * time.Millisecond, 3375 * time.Millisecond},
		"864000":                        {11250 * time.Millisecond},
		"99999999999999999999999":       {11250 * time.Millisecond},
		"-5":                            {250 * time.Millisecond},
		"soon":                          {250 * time.Millisecond},
		"Fri, 31 Dec 1999 23:59:59 GMT": {250 * time.Millisecond},
	} {
		var pauses []time.Duration
		server := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n > len(want) {
				w.Write(document)
				return
			}
			w.Header().Set("Retry-After", asked)
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		o := quick(fetch.Options{BackoffMax: 4 * time.Second, RetryAfterMax: 10 * time.Second, Random: func() float64 { return 0.5 }})
		o.Deadline = time.Hour
		o.Sleep = func(_ context.Context, d time.Duration) error { pauses = append(pauses, d); return nil }
		if _, err := newFetcher(t, o).Get(t.Context(), fetch.Request{URLs: []string{server.URL}}); err != nil {
			t.Errorf("Retry-After %q: %v", asked, err)
		}
		if fmt.Sprint(pauses) != fmt.Sprint(want) {
			t.Errorf("Retry-After %q: pauses %v, want %v", asked, pauses, want)
		}
	}
}

// Field case 63: a cut body is fetched again, from where it was cut when the server can, and the digest is of the whole.
func TestCutBodyIsResumed(t *testing.T) {
	for name, etag := range map[string]string{"strong ETag": `"v1"`, "weak ETag": `W/"v1"`, "none": ""} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
				if etag != "" {
					w.Header().Set("ETag", etag)
				}
				if n < 4 {
					w = &cutter{ResponseWriter: w, left: len(document) / 4}
				}
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(document))
			})
			result, err := newFetcher(t, quick(fetch.Options{})).Get(t.Context(), fetch.Request{URLs: []string{server.URL}, Digest: sha256Of(document)})
			if err != nil || !bytes.Equal(result.Body, document) || result.Attempts != 4 {
				t.Fatalf("%+v, %v", result, err)
			}
			if want := map[bool]int{true: 3}[etag == `"v1"`]; result.Resumed != want {
				t.Errorf("resumed %d times, want %d", result.Resumed, want)
			}
		})
	}
}

// cutter ends the connection after so many bytes of the body.
type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	if c.left -= len(p); c.left < 0 {
		c.ResponseWriter.Write(p[:len(p)+c.left])
		http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return c.ResponseWriter.Write(p)
}

// The first URL that works is the one that counts, and each phase of trouble is told once.
func TestURLsInTurn(t *testing.T) {
	bad := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such path", http.StatusBadRequest)
	})
	slow := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n < 10 {
			http.Error(w, "pool worker is not captured yet", http.StatusServiceUnavailable)
			return
		}
		w.Write(document)
	})
	var log bytes.Buffer
	f := newFetcher(t, quick(fetch.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}))
	result, err := f.Get(t.Context(), fetch.Request{URLs: []string{bad.URL, slow.URL + "/?secret=S3CR3T"}})
	if err != nil || !strings.HasPrefix(result.URL, slow.URL) || result.Attempts != 11 {
		t.Fatalf("%+v, %v", result, err)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 3 || !strings.Contains(log.String(), "not captured yet") || strings.Contains(log.String(), "S3CR3T") {
		t.Errorf("%d lines, want 3 and no secret:\n%s", lines, log.String())
	}
}

func wantKind(t *testing.T, err error, want fetch.Kind) *fetch.GaveUpError {
	t.Helper()
	gaveUp, ok := errors.AsType[*fetch.GaveUpError](err)
	if !ok || len(gaveUp.Troubles) == 0 || gaveUp.Troubles[0].Kind != want {
		t.Errorf("got %v, want trouble of kind %q", err, want)
		return nil
	}
	return gaveUp
}
