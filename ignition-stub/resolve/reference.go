// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_6/types"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// get returns the bytes that a reference stands for: fetched or taken from a data URL, inflated, verified. check may
// refuse what a server gave, and then the fetch goes on; it may be nil, which also allows a body of no bytes.
func (r *resolution) get(reference types.Resource, what string, also []string, check func([]byte) error) ([]byte, error) {
	if r.asked++; r.asked > maxReferences {
		return nil, wrong(what, "more than %d references in one config", maxReferences)
	}
	body, err := r.raw(reference, what, also, check)
	if err != nil {
		return nil, err
	}
	if r.bytes += len(body); r.bytes > maxBytes {
		return nil, wrong(what, "everything together is more than %d bytes", maxBytes)
	}
	return body, nil
}

func (r *resolution) raw(reference types.Resource, what string, also []string, check func([]byte) error) ([]byte, error) {
	source := text(reference.Source)
	u, err := url.Parse(source)
	switch {
	case strings.HasPrefix(source, "data:"):
		body, err := contents.Decode(source, "", contents.MaxInflated)
		if err == nil {
			body, err = unpack(body, reference)
		}
		return body, naming(what, err)
	case err != nil:
		return nil, wrong(what, "its URL cannot be read")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, wrong(what, "%.20s URLs are not fetched here; only https, http and data", u.Scheme)
	}
	fetched, err := r.fetch(reference, source, what, also, check)
	if err != nil {
		return nil, naming(what, err)
	}
	return fetched, nil
}

func (r *resolution) fetch(reference types.Resource, source, what string, also []string, check func([]byte) error) ([]byte, error) {
	o := r.Fetch
	r.settings.apply(&o)
	o.Header = http.Header{}
	for _, header := range reference.HTTPHeaders {
		if header.Value != nil {
			o.Header.Set(header.Name, *header.Value)
		}
	}
	if strings.HasPrefix(what, "config") && o.Header.Get("Accept") == "" {
		o.Header.Set("Accept", fmt.Sprintf("application/vnd.coreos.ignition+json;version=%s, */*;q=0.1", r.Accept))
	}
	fetcher, err := fetch.New(o)
	if err != nil {
		return nil, err
	}
	defer fetcher.Close()
	result, err := fetcher.Get(r.ctx, fetch.Request{
		URLs: append([]string{source}, also...), AllowEmpty: check == nil,
		Check: func(body []byte) error {
			body, err := unpack(body, reference)
			if err == nil && check != nil {
				err = check(body)
			}
			return err
		},
	})
	if err != nil {
		return r.cached(reference, source, what, err, check)
	}
	body, err := unpack(result.Body, reference)
	if err != nil {
		return nil, err
	}
	if r.Cache != nil {
		if err := r.Cache.Keep(source, result.Body); err != nil {
			r.Log.Warn("not kept in the cache", "url", result.URL, "cause", err.Error())
		}
	}
	r.sources = append(r.sources, Source{What: what, URL: result.URL, Bytes: len(body), Attempts: result.Attempts})
	return body, nil
}

// cached gives what was kept when no server could be reached. An answer that is a refusal stays one.
func (r *resolution) cached(reference types.Resource, source, what string, failed error, check func([]byte) error) ([]byte, error) {
	gaveUp, ok := errors.AsType[*fetch.GaveUpError](failed)
	if !ok || r.Cache == nil || !gaveUp.Unreachable() || r.ctx.Err() != nil {
		return nil, failed
	}
	kept, err := r.Cache.Find(source)
	if err == nil {
		kept, err = unpack(kept, reference)
	}
	if err == nil && check != nil {
		err = check(kept)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; and the cache cannot help: %w", failed, err)
	}
	shown := fetch.Bare(source)
	r.Log.Warn("no server could be reached; taken from the cache, and perhaps old", "url", shown, "cause", failed.Error())
	r.sources = append(r.sources, Source{What: what, URL: shown, Bytes: len(kept), Attempts: gaveUp.Attempts, Cached: true})
	return kept, nil
}

// unpack inflates, no further than a limit, and verifies what came out, as Ignition does.
func unpack(body []byte, reference types.Resource) ([]byte, error) {
	switch compression := text(reference.Compression); compression {
	case "":
	case contents.Gzip:
		inflated, err := contents.Inflate(body, contents.MaxInflated)
		if errors.Is(err, contents.ErrTooLarge) {
			return nil, fmt.Errorf("%w: it inflates to more than %d bytes", fetch.ErrTooLarge, contents.MaxInflated)
		}
		if err != nil {
			return nil, err
		}
		body = inflated
	default:
		return nil, wrong("compression", "%.20q: Ignition knows only gzip", compression)
	}
	if hash := text(reference.Verification.Hash); hash != "" {
		if err := fetch.Verify(body, hash); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// naming says which reference an error is about.
func naming(what string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, fetch.ErrTooLarge) && !isA[*fetch.GaveUpError](err) {
		return wrong(what, "%v", err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

func isA[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
