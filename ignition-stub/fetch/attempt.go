// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// onceMore is all that is left to go-retryablehttp: a connection that broke before any answer is tried again at once,
// on a new one. Everything else needs to know of bodies, digests and other URLs, and is the loop's.
func onceMore(ctx context.Context, response *http.Response, err error) (bool, error) {
	if err == nil || ctx.Err() != nil || response != nil {
		return false, nil
	}
	return classify(err, time.Now()).Kind == Closed, nil
}

// attempt asks one URL once and returns the whole, verified body.
func (f *Fetcher) attempt(ctx context.Context, r Request, s *source, round int) (*Result, *Trouble) {
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, roundKey{}, round))
	defer cancel(nil)
	tooLong := time.AfterFunc(f.o.AttemptTimeout, func() { cancel(errAttempt) })
	defer tooLong.Stop()

	request, err := f.request(ctx, s)
	if err != nil {
		return nil, s.trouble(Rejected, err, "cannot be asked for: %v", err)
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, s.failed(ctx, err, f.o.Now())
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK, http.StatusPartialContent:
		tooLong.Stop() // from here on it matters that the body moves
	default:
		tooLong.Reset(min(f.o.AttemptTimeout, wordsTimeout)) // a refusal's reason may hang too
	}
	if t := s.refused(response, f.o.Now()); t != nil {
		return nil, t
	}
	body, t := f.read(ctx, cancel, r, s, response)
	if t != nil {
		return nil, t
	}
	if t := f.examine(r, s, body); t != nil {
		return nil, t
	}
	return &Result{Body: body, URL: s.shown, Header: response.Header}, nil
}

type roundKey struct{}

// wordsTimeout is how long the text of a refusal is waited for.
const wordsTimeout = 2 * time.Second

func (f *Fetcher) request(ctx context.Context, s *source) (*retryablehttp.Request, error) {
	request, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, s.url.String(), nil)
	if err != nil {
		return nil, err
	}
	for name, values := range f.o.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	request.Header.Set("Accept-Encoding", "identity")
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", "mcsnap")
	}
	if len(s.partial) > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", len(s.partial)))
		request.Header.Set("If-Range", s.etag)
	}
	return request, nil
}

// refused tells why an answer's head is not that of the document.
func (s *source) refused(response *http.Response, now time.Time) *Trouble {
	status := response.StatusCode
	if status == http.StatusPartialContent && len(s.partial) > 0 {
		if response.Header.Get("ETag") == s.etag && rangeEnds(response.Header.Get("Content-Range"), len(s.partial)) > 0 {
			return nil
		}
		s.forget()
		return s.trouble(Unexpected, nil, "resumed at another place than was asked for; starting again")
	}
	if status == http.StatusRequestedRangeNotSatisfiable && len(s.partial) > 0 {
		s.forget()
		return s.trouble(Cut, nil, "cannot be resumed; starting again")
	}
	if status == http.StatusOK {
		if encoding := response.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
			return s.trouble(Unexpected, nil, "encoded as %.20q unasked, which Ignition cannot read; look for a proxy that compresses", encoding)
		}
		return nil
	}
	text := strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
	if line := firstLine(response.Body); line != "" {
		text += ": " + line
	}
	t := s.trouble(kindOfStatus(status), nil, "%s", text)
	t.Status = status
	t.after = retryAfter(response.Header.Get("Retry-After"), now)
	return t
}

// examine looks at a body that is whole.
func (f *Fetcher) examine(r Request, s *source, body []byte) *Trouble {
	if len(body) == 0 && !r.AllowEmpty {
		return s.trouble(Empty, nil, "an empty answer; Ignition would boot a bare machine from it")
	}
	if r.Digest != "" {
		if err := Verify(body, r.Digest); err != nil {
			return s.trouble(BadDigest, err, "%v", err)
		}
	}
	if r.Check != nil {
		if err := r.Check(body); err != nil {
			if _, other := errors.AsType[*DigestError](err); other {
				return s.trouble(BadDigest, err, "%v", err)
			}
			if errors.Is(err, ErrTooLarge) {
				return s.trouble(TooLarge, err, "%v", err)
			}
			return s.trouble(BadContent, err, "%v", err)
		}
	}
	return nil
}

func (s *source) trouble(kind Kind, err error, format string, args ...any) *Trouble {
	return &Trouble{Kind: kind, URL: s.shown, Text: printable(fmt.Sprintf(format, args...)), Err: err}
}

// failed is the trouble of an attempt that ended with an error of the network.
func (s *source) failed(ctx context.Context, err error, now time.Time) *Trouble {
	if cause := context.Cause(ctx); ctx.Err() != nil && cause != nil {
		err = errors.Join(cause, err)
	}
	t := classify(err, now)
	t.URL, t.Text = s.shown, printable(t.Text)
	return &t
}

// rangeEnds reads "bytes 5-99/100" and returns the length of the whole, 0 unless the range begins where it was asked to.
func rangeEnds(header string, begins int) int64 {
	rest, ok := strings.CutPrefix(header, fmt.Sprintf("bytes %d-", begins))
	_, length, found := strings.Cut(rest, "/")
	whole, err := strconv.ParseInt(length, 10, 64)
	if !ok || !found || err != nil || whole < int64(begins) {
		return 0
	}
	return whole
}

// printable keeps what others wrote (a status line, a name in a certificate) from moving a terminal's cursor.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

func (s *source) forget() { s.partial, s.etag = nil, "" }

// firstLine is what a server says for people; it is shown only where it is short, printable text.
func firstLine(body io.Reader) string {
	line, err := bufio.NewReaderSize(io.LimitReader(body, 200), 256).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "<") || strings.ContainsFunc(line, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return ""
	}
	return line
}

// retryAfter reads both forms of the header, seconds and a date. What it does not understand is 0.
func retryAfter(value string, now time.Time) time.Duration {
	const farAway = 365 * 24 * time.Hour
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		if seconds <= 0 {
			return 0
		}
		return time.Duration(min(seconds, int64(farAway/time.Second))) * time.Second
	} else if errors.Is(err, strconv.ErrRange) && !strings.HasPrefix(value, "-") {
		return farAway
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}

// innermost takes net/http's and go-retryablehttp's wrapping off, which quotes the URL with its query.
func innermost(err error) error {
	for {
		wrapped, ok := errors.AsType[*url.Error](err)
		if !ok {
			return err
		}
		err = wrapped.Err
	}
}
