// SPDX-License-Identifier: Apache-2.0

// Command write makes the reference again: go run ./e2e/reference/write docs/reference.md
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/mcsnap/mcsnap/e2e/commands"
	"github.com/mcsnap/mcsnap/e2e/lab"
	"github.com/mcsnap/mcsnap/e2e/reference"
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
	top, err := lab.Top()
	if err != nil {
		return err
	}
	programs, err := commands.Trees(context.Background())
	if err != nil {
		return err
	}
	metrics, err := reference.Metrics(top + "/mcs")
	if err != nil {
		return err
	}
	return os.WriteFile(file, reference.Render(programs, metrics), 0o644)
}
