// SPDX-License-Identifier: Apache-2.0

package snapshot

import "fmt"

// The ways to be wrong. Each is a type of its own, so that callers choose what to do by errors.As (or errors.AsType)
// and not by text. Fields named Field are JSON Pointers (RFC 6901) into the document that was read. No error carries a
// value of the config: values may be secrets.
type (
	// NotJSONError says that the bytes are not one well-formed JSON (or, for Seal, YAML) object in valid UTF-8.
	NotJSONError struct{ Cause error }

	// KindError says that the document is JSON but not a snapshot of a version this package reads.
	KindError struct{ APIVersion, Kind string }

	// DigestError says that the content is not what the digest promises: the file was changed or damaged.
	DigestError struct {
		Want string // what the document claims
		Got  Digest // what its content has
	}

	// DuplicateKeyError says that an object has the same key twice, which readers resolve differently.
	DuplicateKeyError struct{ Field string }

	// InexactNumberError says that a number does not survive JSON readers that use 64-bit floating point (RFC 8785,
	// RFC 7493): it is beyond ±(2^53−1), or has more digits than a float64 holds.
	InexactNumberError struct{ Field string }

	// NotRenderedError says that the object is not a rendered MachineConfig.
	NotRenderedError struct{ Field, Reason string }

	// TooLargeError says that something is larger than its limit, both in bytes. Size is 0 where reading stopped at the
	// limit and the whole size is not known.
	TooLargeError struct {
		What        string
		Size, Limit int64
	}

	// PathTakenError says that an Ignition config already uses a path of ours for something that is not a file.
	PathTakenError struct{ Path, As string }

	// NoSnapshotError says that an Ignition config carries no snapshot.
	NoSnapshotError struct{ Reason string }
)

func (e *NotJSONError) Error() string {
	return fmt.Sprintf("not a well-formed document: %v; take an unchanged copy", e.Cause)
}
func (e *NotJSONError) Unwrap() error { return e.Cause }

func (e *KindError) Error() string {
	return fmt.Sprintf("apiVersion %.64q, kind %.64q: want %q, %q; this is not a snapshot, or a newer mcsnap wrote it",
		e.APIVersion, e.Kind, APIVersion, Kind)
}

func (e *DigestError) Error() string {
	return fmt.Sprintf("digest mismatch: the document claims %.80s, its machineConfig has %s; it was changed or damaged, fetch it again by digest",
		e.Want, e.Got)
}

func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("%s: the key stands twice in one object; remove one", e.Field)
}

func (e *InexactNumberError) Error() string {
	return fmt.Sprintf("%s: the number does not survive 64-bit floating point (RFC 8785); write it as a string", e.Field)
}

func (e *NotRenderedError) Error() string {
	return fmt.Sprintf("not a rendered MachineConfig: %s: %s; give the object that a pool's controller rendered, whole", e.Field, e.Reason)
}

func (e *TooLargeError) Error() string {
	if e.Size == 0 {
		return fmt.Sprintf("%s is larger than the limit of %d bytes", e.What, e.Limit)
	}
	return fmt.Sprintf("%s has %d bytes, the limit is %d", e.What, e.Size, e.Limit)
}

func (e *PathTakenError) Error() string {
	return fmt.Sprintf("%s is already a %s in the config, and mcsnap writes a file there; remove it from the MachineConfig", e.Path, e.As)
}

func (e *NoSnapshotError) Error() string {
	return "the Ignition config carries no snapshot: " + e.Reason
}
