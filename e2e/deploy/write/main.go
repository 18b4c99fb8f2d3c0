// SPDX-License-Identifier: Apache-2.0

// Command write writes the resource definitions that a cluster without OpenShift needs: go run ./e2e/deploy/write FILE
package main

import (
	"fmt"
	"os"

	"github.com/mcsnap/mcsnap/e2e/deploy"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: write FILE")
		os.Exit(2)
	}
	text, err := deploy.CRDs()
	if err == nil {
		err = os.WriteFile(os.Args[1], text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(1)
	}
}
