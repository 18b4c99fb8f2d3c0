// SPDX-License-Identifier: Apache-2.0

package run

// InputError says that a file or a setting that was given is not valid. Nothing was changed.
type InputError struct{ Cause error }

func (e *InputError) Error() string { return e.Cause.Error() }
func (e *InputError) Unwrap() error { return e.Cause }

// MachineError says that this machine is in the way: a folder cannot be written, a port is in use.
type MachineError struct{ Cause error }

func (e *MachineError) Error() string { return e.Cause.Error() }
func (e *MachineError) Unwrap() error { return e.Cause }
