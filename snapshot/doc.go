// SPDX-License-Identifier: Apache-2.0

// Package snapshot is the format of /etc/mcd-snapshot.json: a rendered MachineConfig that travels with the node that
// boots from it, so that nobody ever has to find the object by name again.
//
// [Seal] makes a snapshot from a rendered config, [Open] and [LoadFile] read one back and verify it, [Embed] and
// [Extract] put it into an Ignition config and take it out. This is what the author of a node's daemon imports; package
// [github.com/mcsnap/mcsnap/snapshot/lister] beside it makes an existing daemon fall back to the snapshot.
//
// A snapshot is identified by its [Digest]: SHA-256 over the RFC 8785 form of the MachineConfig less what is not
// content (see docs/snapshot-format.md). Reformatting the file does not change it; changing any value does.
//
// The package is not a client of anything: it knows no network and no Kubernetes, and it never round-trips the config
// through a typed struct, so fields it has never heard of survive. A snapshot holds secrets: its bytes belong in files
// of mode 0600, and no error of this package quotes a value of the config.
package snapshot
