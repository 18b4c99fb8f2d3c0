// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mcsnap/mcsnap/snapshot"
)

// A daemon that starts: the config it was born with comes from the node's own disk, and nobody has to find the object.
func ExampleLoadFile() {
	root, err := os.MkdirTemp("", "node")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(root) //nolint:errcheck // an example's scratch folder
	path := filepath.Join(root, "mcd-snapshot.json")
	sealed, err := os.ReadFile("testdata/rendered-worker.snapshot.json")
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(path, sealed, 0o600); err != nil {
		panic(err)
	}

	snap, err := snapshot.LoadFile(path) // a daemon passes snapshot.Path
	if err != nil {
		panic(err)
	}
	fmt.Println("pool", snap.Pool(), "runs", snap.Name())
	fmt.Println(snap.Digest())
	// Output:
	// pool worker runs rendered-worker-0123456789abcdef0123456789abcdef
	// sha256:bf6aba59bcf679380d6eafdbff458e833b631e5aa1469124092d99721551cdf6
}

// What is wrong with a snapshot decides what to do: damaged content is fetched again, by its digest.
func ExampleOpen_damaged() {
	sealed, err := os.ReadFile("testdata/rendered-worker.snapshot.json")
	if err != nil {
		panic(err)
	}
	sealed[len(sealed)/2] ^= 1

	_, err = snapshot.Open(sealed)
	if mismatch, ok := errors.AsType[*snapshot.DigestError](err); ok {
		fmt.Println("refetch", mismatch.Want)
	}
	// Output:
	// refetch sha256:bf6aba59bcf679380d6eafdbff458e833b631e5aa1469124092d99721551cdf6
}

// A server that sends a snapshot along, and a reader that takes it out of the config again.
func ExampleEmbed() {
	rendered, err := os.ReadFile("testdata/rendered-worker.yaml")
	if err != nil {
		panic(err)
	}
	snap, err := snapshot.Seal(rendered, "worker")
	if err != nil {
		panic(err)
	}
	served, err := snapshot.Embed([]byte(`{"ignition":{"version":"3.4.0"}}`), snap)
	if err != nil {
		panic(err)
	}
	carried, err := snapshot.Extract(served)
	if err != nil {
		panic(err)
	}
	fmt.Println(snapshot.SameConfig(snap, carried))
	// Output: true
}
