// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
	"github.com/mcsnap/mcsnap/ignition-stub/inspect"
	"github.com/mcsnap/mcsnap/ignition-stub/resolve"
	"github.com/mcsnap/mcsnap/ignition-stub/stub"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/durable"
)

const exitCodes = `0 done, 1 another failure, 2 wrong usage, 3 bad input (a file, a config, a stub), 4 this machine (a file
cannot be read or written), 5 the network or the server, 6 content that does not match its digest.`

// usageError says that the command line is wrong.
type usageError struct{ cause error }

func (e *usageError) Error() string { return e.cause.Error() + "; see --help" }
func (e *usageError) Unwrap() error { return e.cause }

func usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// inputError says that something given is not valid.
type inputError struct{ cause error }

func (e *inputError) Error() string { return e.cause.Error() }
func (e *inputError) Unwrap() error { return e.cause }

func badInput(format string, args ...any) error { return &inputError{fmt.Errorf(format, args...)} }

// toldError is a failure that the command's own output has told already.
type toldError struct{ cause error }

func (e *toldError) Error() string { return e.cause.Error() }
func (e *toldError) Unwrap() error { return e.cause }

func wasTold(err error) bool { return isA[*toldError](err) }

// noArguments refuses stray words, which cobra would call a failure like any other.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("unexpected argument %q", args[0])
	}
	return nil
}

func exitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case isA[*usageError](err), strings.HasPrefix(err.Error(), "unknown command"):
		return 2
	case isA[*inputError](err), isA[*stub.InputError](err), isA[*stub.TooLargeError](err), isA[*fetch.InputError](err),
		isA[*resolve.InputError](err), isA[*inspect.InputError](err):
		return 3
	case isA[*snapshot.DigestError](err):
		return 6
	case isA[*machineError](err), isA[*durable.NotRegularError](err), isA[*fs.PathError](err):
		return 4
	}
	if gaveUp, ok := errors.AsType[*fetch.GaveUpError](err); ok {
		if gaveUp.Verification() {
			return 6
		}
		return 5
	}
	switch {
	case isA[*fetch.DigestError](err): // of contents that no server sent: a data URL
		return 6
	case errors.Is(err, context.Canceled):
		return 5
	}
	return 1
}

func isA[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}
