// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

var (
	errDeadline = errors.New("the deadline is over")
	errAttempt  = errors.New("the attempt took too long")
	errStalled  = errors.New("the body stopped coming")
)

// ErrTooLarge is for a request's Check: the body stands for more bytes than are taken.
var ErrTooLarge = errors.New("too large")

// InputError says that options or a request cannot work anywhere.
type InputError struct{ Field, Problem string }

func (e *InputError) Error() string { return e.Field + ": " + e.Problem }

// Trouble is why one attempt at one URL failed.
type Trouble struct {
	Kind   Kind
	URL    string // without credentials and query
	Text   string // what happened and, where something can be done, what
	Status int    // of the answer, 0 without one
	Err    error  // the cause below, perhaps nil

	after time.Duration // what the server's Retry-After asks for
}

func (t *Trouble) Error() string { return t.URL + ": " + t.Text }
func (t *Trouble) Unwrap() error { return t.Err }

// GaveUpError says that the document did not arrive. Its Troubles are the last one of each URL, in the request's order.
type GaveUpError struct {
	Attempts int
	Elapsed  time.Duration
	Cause    error // context.Canceled and the like; nil when every URL gave an answer that is final
	Troubles []*Trouble
}

func (e *GaveUpError) Error() string {
	times := "attempts"
	if e.Attempts == 1 {
		times = "attempt"
	}
	var lines []string
	for _, trouble := range e.Troubles {
		lines = append(lines, trouble.Error())
	}
	text := fmt.Sprintf("gave up after %d %s in %v", e.Attempts, times, e.Elapsed.Round(time.Millisecond))
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return strings.Join(append([]string{text}, lines...), "; ")
}

// Unwrap gives the cause and the troubles.
func (e *GaveUpError) Unwrap() (errs []error) {
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	for _, trouble := range e.Troubles {
		errs = append(errs, trouble)
	}
	return errs
}

// Verification tells whether a server gave a whole document that is not the one of the digest: exit code 6 rather than 5.
func (e *GaveUpError) Verification() bool {
	for _, trouble := range e.Troubles {
		if trouble.Kind == BadDigest {
			return true
		}
	}
	return false
}

// Unreachable tells whether no server gave an answer that means something: every trouble was one that is met until the
// deadline.
func (e *GaveUpError) Unreachable() bool {
	for _, trouble := range e.Troubles {
		if trouble.Kind.patience() != untilDeadline {
			return false
		}
	}
	return len(e.Troubles) > 0
}

// DigestError says that a whole body has another digest than was asked for. It stands below a [Trouble].
type DigestError struct{ Want, Got string }

func (e *DigestError) Error() string {
	return fmt.Sprintf("digest mismatch: want %s, got %s", e.Want, e.Got)
}

// Bare is a URL as it may be told: credentials stand in user information and queries.
func Bare(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(not a URL)"
	}
	return bare(u)
}

func bare(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return shown.String()
}
