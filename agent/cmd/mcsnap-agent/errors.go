// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/snapshot"
)

// The exit codes that every command of mcsnap shares.
const (
	exitOther        = 1
	exitUsage        = 2
	exitInput        = 3
	exitMachine      = 4
	exitNetwork      = 5
	exitVerification = 6
)

// usageError is a command line that asks for what is not there.
type usageError struct{ cause error }

func (e *usageError) Error() string { return e.cause.Error() + "; see --help" }
func (e *usageError) Unwrap() error { return e.cause }

// toldError is a failure that was reported already, in its own form.
type toldError struct{ cause error }

func (e *toldError) Error() string { return e.cause.Error() }
func (e *toldError) Unwrap() error { return e.cause }

func exitCode(err error) int {
	if _, is := errors.AsType[*usageError](err); is || strings.HasPrefix(err.Error(), "unknown command") {
		return exitUsage
	}
	if damaged, is := errors.AsType[*handoff.DamagedError](err); is {
		if damaged.Network && !isA[*snapshot.DigestError](damaged.Refetch) {
			return exitNetwork
		}
		return exitVerification
	}
	if isA[*handoff.MixedError](err) || isA[*snapshot.DigestError](err) {
		return exitVerification
	}
	if isA[*handoff.InputError](err) || isA[*snapshot.NotJSONError](err) || isA[*snapshot.KindError](err) ||
		isA[*snapshot.DuplicateKeyError](err) || isA[*snapshot.InexactNumberError](err) ||
		isA[*snapshot.NotRenderedError](err) || isA[*snapshot.TooLargeError](err) {
		return exitInput
	}
	if isA[*handoff.MachineError](err) || isA[*fs.PathError](err) {
		return exitMachine
	}
	return exitOther
}

func isA[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}
