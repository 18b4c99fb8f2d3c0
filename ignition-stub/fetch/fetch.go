// SPDX-License-Identifier: Apache-2.0

// Package fetch gets one document over HTTP and is built to arrive: from a network that is not there yet, a clock that
// is not set, a server that is being rolled, a load balancer that cuts connections. Its loop encloses the whole of it:
// get, read, check the length, check the digest. It ends with the right bytes, or with an error that names the cause.
//
// It knows nothing of Ignition or of snapshots: whoever needs the bytes to mean something gives a Check. Package
// resolve beside it does what Ignition does with a config's references.
//
// How each trouble is met is in [Kind] and, measured beside the real Ignition, in docs/fetch-behaviour.md.
package fetch

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// Options say how to fetch. The zero value is good for a machine's first boot.
type Options struct {
	// CA holds certificates in PEM; servers' must descend from one of them. Empty means the system's.
	CA []byte
	// SystemCAs trusts the system's certificates besides CA, as Ignition does.
	SystemCAs bool

	// Header is sent with every request, and never to another host than the one that was asked for: a redirect there
	// loses all of it but Accept.
	Header http.Header

	// Deadline bounds one Get, all attempts together. 0 means 3 hours.
	Deadline time.Duration
	// AttemptTimeout bounds one attempt up to the end of the response's headers. 0 means 30 seconds.
	AttemptTimeout time.Duration
	// StallTimeout is how long a body may bring next to nothing (less than 256 bytes a second) before the attempt is
	// ended. 0 means 20 seconds. A body that keeps coming may take until the deadline.
	StallTimeout time.Duration

	// MaxBytes is the largest body that is read. 0 means 64 MiB.
	MaxBytes int64
	// Tries is how often a server is asked that gives a wrong answer which seldom mends itself (see [Kind]). 0 means 5.
	Tries int

	// BackoffMin and BackoffMax bound the pause after a round of all URLs: a random time up to BackoffMin doubled by
	// the number of rounds. 0 means half a second, and 30 seconds.
	BackoffMin, BackoffMax time.Duration
	// RetryAfterMax caps what a server's Retry-After may ask for. 0 means 2 minutes.
	RetryAfterMax time.Duration

	// Proxy chooses the proxy for a URL. Nil means the environment's (HTTPS_PROXY, NO_PROXY and so on).
	Proxy func(*url.URL) (*url.URL, error)
	// Resolver looks names up. Nil means the system's.
	Resolver interface {
		LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error)
	}

	// Log gets one line for each phase of trouble. Nil means none.
	Log *slog.Logger
	// Progress is called as a body comes in, with the bytes had so far and the whole length (-1: not known). It may be
	// nil, and is called from the goroutine of Get.
	Progress func(got, whole int64)

	// Now, Sleep and Random (in [0,1)) are the clock and the dice. Nil means the real ones.
	Now    func() time.Time
	Sleep  func(context.Context, time.Duration) error
	Random func() float64
}

// Request is one document.
type Request struct {
	// URLs are where the document is, asked in turn. At least one.
	URLs []string
	// Digest is "sha256-" or "sha512-" and hexadecimal digits, as Ignition writes it. Empty means unknown. It is of the
	// body as it comes.
	Digest string
	// AllowEmpty accepts a body of no bytes. Ignition takes one for an empty config and boots a bare machine.
	AllowEmpty bool
	// Check refuses a body that is whole but not what is wanted, such as an error page. A [DigestError] from it counts as
	// one of Digest's, [ErrTooLarge] as one of MaxBytes. It may be nil. The body belongs to the fetcher until Get returns.
	Check func(body []byte) error
}

// Result is a document that arrived.
type Result struct {
	Body     []byte
	URL      string      // the one of the request that gave it, without credentials and query
	Header   http.Header // of the last response
	Attempts int         // 1 when nothing went wrong
	Resumed  int         // how many attempts went on from where another was cut
}

// Fetcher fetches. It is safe for use by several goroutines.
type Fetcher struct {
	o      Options
	client *retryablehttp.Client
}

// New checks the options. The error is an [InputError].
func New(o Options) (*Fetcher, error) {
	orDefault(&o.Deadline, 3*time.Hour)
	orDefault(&o.AttemptTimeout, 30*time.Second)
	orDefault(&o.StallTimeout, 20*time.Second)
	orDefault(&o.MaxBytes, 64<<20)
	orDefault(&o.Tries, 5)
	orDefault(&o.BackoffMin, 500*time.Millisecond)
	orDefault(&o.BackoffMax, 30*time.Second)
	orDefault(&o.RetryAfterMax, 2*time.Minute)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if err := checkHeader(o.Header); err != nil {
		return nil, err
	}
	transport, err := newTransport(o)
	if err != nil {
		return nil, err
	}
	f := &Fetcher{o: o}
	f.client = &retryablehttp.Client{
		HTTPClient: &http.Client{Transport: transport, CheckRedirect: f.checkRedirect},
		RetryMax:   1,
		CheckRetry: onceMore,
		Backoff: func(_, _ time.Duration, _ int, _ *http.Response) time.Duration {
			return time.Duration(o.Random() * float64(o.BackoffMin) / 4)
		},
	}
	return f, nil
}

// Close lets go of idle connections. The fetcher can still be used.
func (f *Fetcher) Close() { f.client.HTTPClient.CloseIdleConnections() }

// Get fetches one document. The error is an [InputError], a [GaveUpError], or the context's.
func (f *Fetcher) Get(ctx context.Context, r Request) (*Result, error) {
	sources, err := newSources(r)
	if err != nil {
		return nil, err
	}
	began := f.o.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, f.o.Deadline, errDeadline)
	defer cancel()
	story := story{log: f.o.Log}
	for round := 0; ; round++ {
		for _, s := range sources {
			if s.ended {
				continue
			}
			story.attempts++
			result, trouble := f.attempt(ctx, r, s, round)
			if trouble == nil {
				result.Attempts = story.attempts
				for _, other := range sources {
					result.Resumed += other.resumed
				}
				story.arrived(result, f.o.Now().Sub(began))
				return result, nil
			}
			if ctx.Err() != nil {
				s.interrupted(trouble)
				return nil, story.gaveUp(context.Cause(ctx), sources, f.o.Now().Sub(began))
			}
			s.note(trouble, f.o.Tries)
			story.tell(s)
			// A load balancer keeps sending a connection to the server that refused.
			f.client.HTTPClient.CloseIdleConnections()
		}
		wait, left := f.pause(sources, round), f.o.Deadline-f.o.Now().Sub(began)
		if allEnded(sources) {
			return nil, story.gaveUp(nil, sources, f.o.Now().Sub(began))
		}
		if left <= 0 {
			return nil, story.gaveUp(errDeadline, sources, f.o.Now().Sub(began))
		}
		if err := f.o.Sleep(ctx, min(wait, left)); err != nil {
			return nil, story.gaveUp(context.Cause(ctx), sources, f.o.Now().Sub(began))
		}
	}
}

func orDefault[T comparable](value *T, standard T) {
	var zero T
	if *value == zero {
		*value = standard
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
