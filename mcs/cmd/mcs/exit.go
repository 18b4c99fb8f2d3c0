// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/mcs/run"
	"github.com/mcsnap/mcsnap/mcs/settings"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

const exitCodes = `0 done, 1 another failure (bodies cut short at the end among them), 2 wrong usage, 3 bad input: a file
or a setting that is not valid, 4 this machine: a folder cannot be written, a port is in use.`

const storeExitCodes = `0 done, 1 another failure, 2 wrong usage, 3 bad input: no such store or snapshot, 4 this machine: a file cannot
be read or written, 5 the API server could not be asked, 6 a snapshot does not match its digest.`

// usageError says that the command line is wrong.
type usageError struct{ cause error }

func (e *usageError) Error() string { return e.cause.Error() + "; see --help" }
func (e *usageError) Unwrap() error { return e.cause }

func usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// noArguments refuses stray words, which cobra would call a failure like any other.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("unexpected argument %q", args[0])
	}
	return nil
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if _, wrong := errors.AsType[*usageError](err); wrong || strings.HasPrefix(err.Error(), "unknown command") {
		return 2
	}
	if _, wrong := errors.AsType[*settings.UsageError](err); wrong {
		return 2
	}
	if _, bad := errors.AsType[*run.InputError](err); bad {
		return 3
	}
	if _, bad := errors.AsType[*settings.Error](err); bad {
		return 3
	}
	if _, machine := errors.AsType[*run.MachineError](err); machine {
		return 4
	}
	if _, network := errors.AsType[*networkError](err); network {
		return 5
	}
	if _, damaged := errors.AsType[*store.DamagedError](err); damaged {
		return 6
	}
	if _, damaged := errors.AsType[*verificationError](err); damaged {
		return 6
	}
	return 1
}
