// SPDX-License-Identifier: Apache-2.0

// Package lab gives tests and the demo the real parts that mcsnap is proven against: Ignition as nodes run it, and an
// API server with its etcd and garbage collector. It finds what `make -C e2e/lab PART` built and runs it; it builds
// nothing itself, and it imitates nothing. What is missing is an error that names the command which builds it, never a
// reason to skip.
package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const module = "module github.com/mcsnap/mcsnap\n"

// NotBuiltError tells that a part of the lab was not built on this machine.
type NotBuiltError struct{ Part, Dir string }

func (e *NotBuiltError) Error() string {
	return fmt.Sprintf("the lab's %s is not in %s: build it with `make -C e2e/lab %s`", e.Part, e.Dir, e.Part)
}

// Top returns the top folder of the module that the working directory lies in.
func Top() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the top of the module: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.Contains(text, []byte(module)) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the top of the module: neither %s nor a folder above it has mcsnap's go.mod; run this inside a clone", start)
		}
	}
}

// Bin returns the folder that holds the programs of one part: "ignition", "kube" or "lint". The error is a
// *NotBuiltError when the part still has to be built.
func Bin(part string) (string, error) {
	top, err := Top()
	if err != nil {
		return "", err
	}
	where := exec.Command(filepath.Join(top, "e2e", "lab", "where"), part)
	out, err := where.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return "", fmt.Errorf("ask e2e/lab/where for %s: %w", part, err)
	}
	dir := strings.TrimSpace(string(out))
	switch _, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return "", &NotBuiltError{Part: part, Dir: dir}
	case err != nil:
		return "", fmt.Errorf("look for the lab's %s: %w", part, err)
	}
	return dir, nil
}

// Find returns the path of one program of a part.
func Find(part, program string) (string, error) {
	dir, err := Bin(part)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, program), nil
}
