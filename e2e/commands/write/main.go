// SPDX-License-Identifier: Apache-2.0

// Command write makes the programs' man pages and completions: go run ./e2e/commands/write FOLDER
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/mcsnap/mcsnap/e2e/commands"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: write FOLDER")
		os.Exit(2)
	}
	if err := commands.Share(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(1)
	}
}
