// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// follower learns what a watcher reads. Its methods are called one at a time, in the order of the server's events, and
// the watcher reads on only when they have returned: what is acknowledged to the server is what has been dealt with.
type follower interface {
	// observe is told of an object as it is now.
	observe(ctx context.Context, m meta, raw json.RawMessage)
	// gone is told that an object was deleted; raw is its last state.
	gone(ctx context.Context, m meta, raw json.RawMessage)
	// complete is told the names of all objects there are, after they were observed.
	complete(names map[string]bool)
}

// watcher keeps a follower informed of one kind of object. It is what client-go's Reflector is, with three
// differences that capture needs: objects stay the JSON that was sent, at most one is in memory, and the resource
// version to go on from can outlive the process.
type watcher struct {
	api       *api
	at        string // the path of the collection
	selector  string // a field selector, "" for all
	follower  follower
	log       *slog.Logger
	pageSize  int
	connected func(err error) // told of each success (nil) and failure
	patience  time.Duration   // how long a streamed list may say nothing

	version    string // up to which events were dealt with
	progress   bool   // something was learned since run looked last
	watchLists bool   // the server streams its first list (KEP-3157)
}

// run watches until ctx ends.
func (w *watcher) run(ctx context.Context) {
	w.watchLists = true
	synced := false
	backoff := time.Duration(0)
	for ctx.Err() == nil {
		begun := time.Now()
		err := w.once(ctx, &synced)
		if ctx.Err() != nil {
			return
		}
		if isGone(err) { // the events in between are lost, so all there is is looked at again
			w.log.Info("the API server no longer has the events since the last one seen; reading everything again", "path", w.at)
			synced, err = false, nil
		}
		if w.progress || err == nil && time.Since(begun) > time.Second { // it worked, and ended in its time or was cut
			w.progress, backoff, err = false, 0, nil
		}
		w.connected(err)
		backoff = min(max(2*backoff, 50*time.Millisecond), maxBackoff)
		wait(ctx, backoff/2+rand.N(backoff/2))
	}
}

// maxBackoff is how long at most a lost watch is not tried again: short, because configs are rendered and deleted
// within seconds.
const maxBackoff = 5 * time.Second

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// once brings the follower up to date, if it is not, and watches until the stream ends.
func (w *watcher) once(ctx context.Context, synced *bool) error {
	if *synced {
		_, err := w.stream(ctx, url.Values{"resourceVersion": {w.version}}, nil)
		return err
	}
	if w.watchLists {
		names := map[string]bool{}
		complete, err := w.stream(ctx, url.Values{
			"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"}, "resourceVersion": {""},
		}, names)
		*synced = complete
		if errors.Is(err, errStalled) { // pages do not depend on the server's own catching up
			w.watchLists = false
			w.log.Warn("the API server began to stream its list and did not go on; reading it in pages", "path", w.at)
			return err
		}
		if status, is := errors.AsType[*statusError](err); !is || status.Code != http.StatusUnprocessableEntity && status.Code != http.StatusBadRequest {
			return err
		}
		w.watchLists = false
		w.log.Info("the API server does not stream lists; reading them in pages", "path", w.at)
	}
	if err := w.pages(ctx); err != nil {
		return err
	}
	*synced = true
	_, err := w.stream(ctx, url.Values{"resourceVersion": {w.version}}, nil)
	return err
}

// pages reads all objects, a few at a time.
func (w *watcher) pages(ctx context.Context) error {
	names := map[string]bool{}
	query := url.Values{"limit": {strconv.Itoa(w.pageSize)}}
	if w.selector != "" {
		query.Set("fieldSelector", w.selector)
	}
	for {
		read, err := w.api.list(ctx, w.at, query, func(raw json.RawMessage) error {
			var m meta
			if err := json.Unmarshal(raw, &m); err != nil {
				return err
			}
			names[m.Metadata.Name] = true
			w.follower.observe(ctx, m, raw)
			w.progress = true
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		w.connected(nil)
		if read.Metadata.Continue == "" {
			w.version = read.Metadata.ResourceVersion
			w.follower.complete(names)
			return nil
		}
		query.Set("continue", read.Metadata.Continue)
	}
}

// errStalled says that a list began to be streamed and did not come to its end.
var errStalled = errors.New("the streamed list has stalled")

// event is one line of a watch.
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// stream watches until the server ends the watch (nil) or it fails. With names it expects the server to stream the
// list first, collects it there and reports whether it was complete.
func (w *watcher) stream(ctx context.Context, query url.Values, names map[string]bool) (complete bool, err error) {
	query.Set("watch", "true")
	query.Set("allowWatchBookmarks", "true")
	query.Set("timeoutSeconds", strconv.Itoa(300+rand.IntN(300))) // so that servers do not all come back at once
	if w.selector != "" {
		query.Set("fieldSelector", w.selector)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	listing := time.AfterFunc(w.patience, func() { cancel(errStalled) })
	defer listing.Stop()
	if names == nil {
		listing.Stop()
	}
	stalled := func(err error) error {
		if err != nil && errors.Is(context.Cause(ctx), errStalled) {
			return errStalled
		}
		return err
	}
	body, err := w.api.get(ctx, w.at, query)
	if err != nil {
		return false, stalled(err)
	}
	defer body.Close() //nolint:errcheck // only read
	w.connected(nil)
	decoder := json.NewDecoder(body)
	for {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return complete, nil
		} else if err != nil {
			return complete, stalled(fmt.Errorf("watch %s: %w", w.at, err))
		}
		if names != nil {
			listing.Stop() // what the follower does with an event may take its time
		}
		last, err := w.handle(ctx, e, names)
		if err != nil {
			return complete, err
		}
		switch {
		case last && names != nil:
			w.follower.complete(names)
			names, complete = nil, true
		case names != nil:
			listing.Reset(w.patience)
		}
	}
}

// initialEventsEnd marks the bookmark after a streamed list.
const initialEventsEnd = "k8s.io/initial-events-end"

// handle deals with one event and reports whether it ends the streamed list.
func (w *watcher) handle(ctx context.Context, e event, names map[string]bool) (last bool, err error) {
	if e.Type == "ERROR" {
		var status struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}
		_ = json.Unmarshal(e.Object, &status) // what cannot be read is reported as code 0
		return false, &statusError{Code: status.Code, Message: status.Message}
	}
	var m meta
	if err := json.Unmarshal(e.Object, &m); err != nil {
		return false, fmt.Errorf("watch %s: %w", w.at, err)
	}
	switch e.Type {
	case "ADDED", "MODIFIED":
		if names != nil {
			names[m.Metadata.Name] = true
		}
		w.follower.observe(ctx, m, e.Object)
	case "DELETED":
		delete(names, m.Metadata.Name)
		w.follower.gone(ctx, m, e.Object)
	case "BOOKMARK":
		last = m.Metadata.Annotations[initialEventsEnd] == "true"
	default:
		return false, nil
	}
	if err := ctx.Err(); err != nil { // the follower may have given up half-way
		return false, err
	}
	w.progress = true
	// The events of a streamed list come in no order: only their end is a version to go on from.
	if names == nil || last {
		w.version = m.Metadata.ResourceVersion
	}
	return last, nil
}
