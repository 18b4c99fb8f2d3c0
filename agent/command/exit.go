// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/snapshot"
)

// The exit codes that every command of mcsnap shares, 0 for done besides.
const (
	Other        = 1 // failed for a reason not listed below
	Usage        = 2 // wrong usage
	Input        = 3 // a file or config that is not valid; nothing was changed
	Machine      = 4 // this machine: a file cannot be read or written, systemd cannot be reached
	Network      = 5 // a server was not reached, or refused
	Verification = 6 // content does not match its digest
)

// ExitCodes says them in a program's help.
const ExitCodes = `Exit codes: 0 done, 1 other failure, 2 wrong usage, 3 bad input, 4 this machine
(a file or systemd's bus), 5 network or server, 6 verification.`

// UsageError is a command line that asks for what is not there.
type UsageError struct{ Cause error }

func (e *UsageError) Error() string { return e.Cause.Error() + "; see --help" }
func (e *UsageError) Unwrap() error { return e.Cause }

// ToldError is a failure that was reported already, in its own form.
type ToldError struct{ Cause error }

func (e *ToldError) Error() string { return e.Cause.Error() }
func (e *ToldError) Unwrap() error { return e.Cause }

// CodedError is a failure with the exit code it asks for.
type CodedError struct {
	Code  int
	Cause error
}

func (e *CodedError) Error() string { return e.Cause.Error() }
func (e *CodedError) Unwrap() error { return e.Cause }

// ExitCode is the exit code of a command that failed.
func ExitCode(err error) int {
	if coded, is := errors.AsType[*CodedError](err); is {
		return coded.Code
	}
	if isA[*UsageError](err) || strings.HasPrefix(err.Error(), "unknown command") {
		return Usage
	}
	if damaged, is := errors.AsType[*handoff.DamagedError](err); is {
		if damaged.Network && !isA[*snapshot.DigestError](damaged.Refetch) {
			return Network
		}
		return Verification
	}
	if isA[*handoff.MixedError](err) || isA[*snapshot.DigestError](err) {
		return Verification
	}
	if isA[*handoff.InputError](err) || isA[*snapshot.NotJSONError](err) || isA[*snapshot.KindError](err) ||
		isA[*snapshot.DuplicateKeyError](err) || isA[*snapshot.InexactNumberError](err) ||
		isA[*snapshot.NotRenderedError](err) || isA[*snapshot.TooLargeError](err) {
		return Input
	}
	if isA[*handoff.MachineError](err) || isA[*fs.PathError](err) {
		return Machine
	}
	return Other
}

func isA[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}
