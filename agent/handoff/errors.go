// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/mcsnap/mcsnap/snapshot"
)

type (
	// InputError says that a file of the node is not valid. Nothing was changed.
	InputError struct{ Path, Problem, Remedy string }

	// MachineError says that this machine does not let a file be read or written.
	MachineError struct{ Cause error }

	// DamagedError says that the snapshot is missing or not what was sealed, and that no server gave it back.
	DamagedError struct {
		Want    snapshot.Digest // "" when nothing on the node says what it should be
		Problem error           // what is wrong with the file on disk
		Refetch error           // why it could not be fetched by digest
		Network bool            // whether servers were asked
	}

	// MixedError says that the node was provisioned twice with different configs: the snapshot is of one run of
	// Ignition, the annotations are of another (field case 95).
	MixedError struct {
		AnnotatedConfig, SnapshotConfig string
		AnnotatedDigest, SnapshotDigest snapshot.Digest
	}
)

func (e *InputError) Error() string { return fmt.Sprintf("%s: %s; %s", e.Path, e.Problem, e.Remedy) }

func (e *MachineError) Error() string {
	switch {
	case errors.Is(e.Cause, syscall.ENOSPC), errors.Is(e.Cause, syscall.EDQUOT):
		return e.Cause.Error() + "; make room on that file system"
	case errors.Is(e.Cause, syscall.EROFS):
		return e.Cause.Error() + "; mount that file system writable"
	case errors.Is(e.Cause, fs.ErrPermission):
		return e.Cause.Error() + "; make it readable and writable for root"
	}
	return e.Cause.Error()
}
func (e *MachineError) Unwrap() error { return e.Cause }

func (e *DamagedError) Error() string {
	want := string(e.Want)
	if want == "" {
		want = "unknown: " + AnnotationsPath + " names no digest"
	}
	return fmt.Sprintf("%v; digest wanted: %s; could not be fetched again: %v", e.Problem, want, e.Refetch)
}
func (e *DamagedError) Unwrap() []error { return []error{e.Problem, e.Refetch} }

func (e *MixedError) Error() string {
	return fmt.Sprintf("mixed provisioning: %s holds %s (%s), but %s names %s (%s): Ignition ran twice with different configs; provision the node again",
		snapshot.Path, e.SnapshotConfig, e.SnapshotDigest, AnnotationsPath, e.AnnotatedConfig, orUnknown(e.AnnotatedDigest))
}

func orUnknown(d snapshot.Digest) string {
	if d == "" {
		return "no digest"
	}
	return string(d)
}

func machineError(err error) error {
	if err == nil {
		return nil
	}
	return &MachineError{err}
}
