// SPDX-License-Identifier: Apache-2.0

// Command write lays the example cluster out in a folder, which it empties first: go run ./e2e/example/write DIR
package main

import (
	"fmt"
	"os"

	"github.com/mcsnap/mcsnap/e2e/example"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: write DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(1)
	}
}

func write(folder string) error {
	files, err := example.Cluster()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("empty %s: %w", folder, err)
	}
	return example.Write(folder, files)
}
