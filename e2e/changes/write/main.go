// SPDX-License-Identifier: Apache-2.0

// Command write makes the changelog again: go run ./e2e/changes/write CHANGELOG.md
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mcsnap/mcsnap/e2e/changes"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: write FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(1)
	}
}

func write(file string) error {
	text, err := changes.Render(os.DirFS(filepath.Join(filepath.Dir(file), "docs/changes")))
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
