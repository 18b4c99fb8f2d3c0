// SPDX-License-Identifier: Apache-2.0

// Package refetch gets a snapshot back from mcsnap's servers by its digest: what the agent and the daemon do when the
// one they need is not on disk. It never asks by pool, and it believes no server.
package refetch

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
	"github.com/mcsnap/mcsnap/snapshot"
)

// Servers are where snapshots are asked for.
type Servers struct {
	URLs       []string // such as https://api-int.example.com:22623
	CA         string   // PEM; "" means the system's
	AuthHeader string   // name of the header for Token
	Token      string   // "" sends no header

	Deadline time.Duration // for all attempts together
	Patient  bool          // whether what seldom mends itself is tried more than once
	Log      *slog.Logger  // nil for none
}

// Get returns the verified snapshot of a digest, and how many requests it took. The error is a [fetch.GaveUpError] when
// servers were asked.
func (s Servers) Get(ctx context.Context, digest snapshot.Digest) (*snapshot.Snapshot, int, error) {
	options := fetch.Options{CA: []byte(s.CA), Header: http.Header{}, Deadline: s.Deadline, MaxBytes: snapshot.MaxSealed, Log: s.Log}
	if s.AuthHeader != "" && s.Token != "" {
		options.Header.Set(s.AuthHeader, credentials(s.AuthHeader, s.Token))
	}
	if !s.Patient {
		options.Tries = 1
	}
	fetcher, err := fetch.New(options)
	if err != nil {
		return nil, 0, err
	}
	defer fetcher.Close()

	var got *snapshot.Snapshot
	result, err := fetcher.Get(ctx, fetch.Request{
		URLs: s.addresses(digest),
		Check: func(body []byte) error {
			opened, err := snapshot.Open(body)
			if err != nil {
				return err
			}
			if opened.Digest() != digest {
				return &snapshot.DigestError{Want: string(digest), Got: opened.Digest()}
			}
			got = opened
			return nil
		},
	})
	if err != nil {
		attempts := 0
		if gaveUp, is := errors.AsType[*fetch.GaveUpError](err); is {
			attempts = gaveUp.Attempts
		}
		return nil, attempts, err
	}
	return got, result.Attempts, nil
}

func (s Servers) addresses(digest snapshot.Digest) []string {
	var urls []string
	for _, server := range s.URLs {
		urls = append(urls, strings.TrimRight(server, "/")+"/snapshot/"+digest.PathForm())
	}
	return urls
}

// credentials is the header's value: the Authorization header names its scheme, which a token file seldom does.
func credentials(header, token string) string {
	if strings.EqualFold(header, "Authorization") && !strings.Contains(token, " ") {
		return "Bearer " + token
	}
	return token
}
