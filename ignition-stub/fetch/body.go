// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// leastRate is in bytes per second. Slower than this is a server that hangs, not a slow link.
const leastRate = 256

// read reads a body to its announced end. What came of a cut one is kept, so that the next attempt can go on from
// there, when the server gave it a strong ETag.
func (f *Fetcher) read(ctx context.Context, cancel context.CancelCauseFunc, r Request, s *source, response *http.Response) ([]byte, *Trouble) {
	had, whole := s.partial, response.ContentLength
	if response.StatusCode == http.StatusPartialContent {
		s.resumed++
		// Not what this answer brings: a server may give less of the rest than it was asked for.
		whole = rangeEnds(response.Header.Get("Content-Range"), len(had))
	} else {
		had = nil
	}
	s.forget()
	if whole > f.o.MaxBytes {
		return nil, s.trouble(TooLarge, nil, "%d bytes, more than the limit of %d", whole, f.o.MaxBytes)
	}
	watched := &watched{from: response.Body, got: int64(len(had)), whole: whole, progress: f.o.Progress}
	stop := watched.watch(f.o.StallTimeout, func() { cancel(errStalled) })
	defer stop()

	body, err := readAll(had, io.LimitReader(watched, f.o.MaxBytes+1-int64(len(had))), whole)
	switch {
	case int64(len(body)) > f.o.MaxBytes:
		return nil, s.trouble(TooLarge, nil, "more bytes than the limit of %d", f.o.MaxBytes)
	case err == nil && whole >= 0 && int64(len(body)) != whole:
		err = io.ErrUnexpectedEOF
	case err == nil:
		return body, nil
	}
	if etag := response.Header.Get("ETag"); strings.HasPrefix(etag, `"`) && len(body) > 0 {
		s.partial, s.etag = body, etag
	}
	if errors.Is(context.Cause(ctx), errStalled) {
		return nil, s.trouble(Stalled, errStalled, "the body stopped coming after %d bytes%s", len(body), of(whole))
	}
	return nil, s.trouble(Cut, innermost(err), "the body was cut after %d bytes%s", len(body), of(whole))
}

// readAll appends to what was had. An announced length is a server's word: no more than 1 MiB is set aside on it.
func readAll(had []byte, from io.Reader, whole int64) ([]byte, error) {
	body := make([]byte, len(had), max(int64(len(had)), min(whole, int64(len(had))+1<<20))+512)
	copy(body, had)
	for {
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err != nil {
			if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				err = nil
			}
			return body, err
		}
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
	}
}

// watched counts what is read.
type watched struct {
	from       io.Reader
	got, whole int64
	count      atomic.Int64
	progress   func(got, whole int64)
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	w.count.Add(int64(n))
	w.got += int64(n)
	if w.progress != nil && n > 0 {
		w.progress(w.got, w.whole)
	}
	return n, err
}

// watch calls stalled once when a whole period brought less than the least rate.
func (w *watched) watch(period time.Duration, stalled func()) (stop func()) {
	ticker, done := time.NewTicker(period), make(chan struct{})
	least := int64(leastRate * period.Seconds())
	go func() {
		before := int64(0)
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				count := w.count.Load()
				if count-before < max(1, least) {
					stalled()
					return
				}
				before = count
			}
		}
	}()
	return func() { ticker.Stop(); close(done) }
}
