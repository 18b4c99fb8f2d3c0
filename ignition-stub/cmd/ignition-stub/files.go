// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/mcsnap/mcsnap/snapshot/durable"
)

// largestFile is what is read of a file that is given, in bytes.
const largestFile = 64 << 20

// readFile reads a file, or standard input where the name is "-".
func readFile(name string, stdin io.Reader) ([]byte, error) {
	from := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, largestFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > largestFile:
		return nil, badInput("%s has more than %d bytes; that is no config", name, largestFile)
	}
	return data, nil
}

// write puts a result into a file of mode 0600, since configs hold secrets, or prints it where no file is named. A file
// that holds the same already is left as it is.
func write(name string, data []byte, stdout io.Writer) error {
	if name == "" || name == "-" {
		_, err := stdout.Write(data)
		return err
	}
	if held, err := os.ReadFile(name); err == nil && bytes.Equal(held, data) {
		if info, err := os.Lstat(name); err == nil && info.Mode() == 0o600 {
			return nil
		}
	}
	if err := durable.WriteFile(name, data, 0o600); err != nil {
		return fmt.Errorf("the result is not kept: %w", err)
	}
	return nil
}
