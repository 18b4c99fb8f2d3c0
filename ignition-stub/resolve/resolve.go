// SPDX-License-Identifier: Apache-2.0

// Package resolve does with a stub what Ignition's fetch stage does: it follows replace and merge, verifies, inflates,
// merges with Ignition's own merge code, and returns the one config that the other stages would act on. With Inline the
// contents of remote files are put in too, so that the result needs no network at all.
//
// It fetches with package fetch, which does not give up where Ignition would. It runs no stage, and writes nothing.
package resolve

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
)

// The bounds of one resolution. A config that needs more is a loop, or an attack.
const (
	maxDepth      = 8         // configs that name configs
	maxReferences = 256       // configs, CAs and files together
	maxBytes      = 256 << 20 // of everything that was fetched, inflated
)

// Options say how to resolve.
type Options struct {
	// Fetch is how everything is fetched. Header, CA, SystemCAs and Proxy are overridden by what the configs say.
	Fetch fetch.Options
	// Also are other URLs of what the stub's first reference names, asked in turn with it.
	Also []string
	// Accept is the newest spec version the reader of the result knows, such as "3.4.0". Empty means the stub's own.
	Accept string
	// Inline fetches remote contents of files too and puts them into the config.
	Inline bool
	// Cache keeps what was fetched, and gives it where every URL fails. Nil means none.
	Cache Cache
	// Log gets what is worth knowing. Nil means none.
	Log *slog.Logger
}

// Cache keeps verified bodies by URL. Package cache has one.
type Cache interface {
	Keep(url string, body []byte) error
	Find(url string) ([]byte, error)
}

// Result is a config without references to other configs.
type Result struct {
	Config  []byte // JSON
	Version string // its spec version
	Sources []Source
}

// Source is one document that went into a result.
type Source struct {
	What     string // "config", "CA", "file" and where in the config it is named
	URL      string // without credentials and query
	Bytes    int    // inflated
	Attempts int
	Cached   bool // no server gave it; it comes from the cache, and may be old
}

// InputError says that a config is not what Ignition reads, or asks for what is not done here.
type InputError struct{ Field, Problem string }

func (e *InputError) Error() string { return e.Field + ": " + e.Problem }

func wrong(field, format string, args ...any) error {
	return &InputError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// Resolve resolves a stub, or any other config of spec 3.0 to 3.6. The error is an [InputError], a
// [fetch.DigestError], or one of package fetch's.
func Resolve(ctx context.Context, stub []byte, o Options) (*Result, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := &resolution{Options: o, ctx: ctx}
	top, err := r.read("the stub", stub)
	if err != nil {
		return nil, err
	}
	if r.Accept == "" {
		r.Accept = top.version
	}
	if err := r.use(top.config); err != nil {
		return nil, err
	}
	if err := r.follow(top, top.config, 0); err != nil {
		return nil, err
	}
	merged, version, err := top.render()
	if err != nil {
		return nil, err
	}
	config, err := withoutReferences(merged)
	if err != nil {
		return nil, err
	}
	if o.Inline {
		if config, err = r.inline(config, version); err != nil {
			return nil, err
		}
	}
	return &Result{Config: config, Version: version, Sources: r.sources}, nil
}

// resolution is one Resolve under way.
type resolution struct {
	Options
	ctx      context.Context
	settings settings // as the configs read so far have them
	sources  []Source
	asked    int
	bytes    int
}
