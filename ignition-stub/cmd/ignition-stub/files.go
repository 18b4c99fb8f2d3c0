// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
			return nil, machine(err, "%s cannot be read", name)
		}
		defer file.Close()
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, largestFile+1))
	switch {
	case err != nil:
		return nil, machine(err, "%s cannot be read", name)
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
	info, err := os.Stat(name)
	if err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice|fs.ModeSocket) != 0 { // such as /dev/stdout
		return pour(name, data)
	}
	if err == nil && info.Mode() == 0o600 {
		if held, err := os.ReadFile(name); err == nil && bytes.Equal(held, data) {
			return nil
		}
	}
	if folder := filepath.Dir(name); err != nil {
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			return machine(err, "-o %s: there is no folder %s; make it", name, folder)
		}
	}
	if err := durable.WriteFile(name, data, 0o600); err != nil {
		if isA[*durable.NotRegularError](err) {
			return fmt.Errorf("-o: %w", err)
		}
		return machine(err, "-o %s cannot be written", name)
	}
	return nil
}

func pour(name string, data []byte) error {
	out, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err == nil {
		_, err = out.Write(data)
		err = errors.Join(err, out.Close())
	}
	if err != nil {
		return machine(err, "-o %s cannot be written", name)
	}
	return nil
}

// machineError says that this machine does not let us.
type machineError struct {
	text  string
	cause error
}

func (e *machineError) Error() string { return e.text }
func (e *machineError) Unwrap() error { return e.cause }

// machine tells a failure of a file by the name that was given, not by that of a temporary one beside it.
func machine(cause error, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if path, ok := errors.AsType[*fs.PathError](cause); ok {
		text += ": " + path.Err.Error()
		switch {
		case errors.Is(cause, fs.ErrNotExist) && !strings.Contains(format, "make it"):
			text += "; name a file that is there"
		case errors.Is(cause, fs.ErrPermission):
			text += "; run this as who may"
		}
	}
	return &machineError{text, cause}
}
