// SPDX-License-Identifier: Apache-2.0

// Package agents keeps the agent binaries that nodes fetch, by their SHA-512, in a folder: the present ones and those
// of earlier starts, because a node that was given its config yesterday fetches yesterday's agent.
package agents

import (
	"bytes"
	"context"
	"crypto/sha512"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"compress/gzip"

	"github.com/mcsnap/mcsnap/snapshot/durable"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// An Agent is one binary that is handed out now.
type Agent struct {
	Arch   string // as Go names it: amd64, arm64, …
	SHA512 string // of the binary, 128 hexadecimal digits
}

// Folder is where the binaries lie: sha512-<hex> and sha512-<hex>.gz.
type Folder struct{ dir string }

// Open returns the folder, made if needed.
func Open(dir string) (*Folder, error) {
	if err := durable.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("agents: %w", err)
	}
	return &Folder{dir}, nil
}

// MaxSize bounds a binary, in bytes: it is held in memory while it is served.
const MaxSize = 64 << 20

// machines are the architectures OpenShift runs on, and Go's other names for 64-bit Linux.
var machines = map[string]elf.Machine{
	"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390, "riscv64": elf.EM_RISCV,
}

// A BadAgentError says what is wrong with a file that was given as an agent.
type BadAgentError struct{ Path, Problem string }

func (e *BadAgentError) Error() string { return fmt.Sprintf("agent %s: %s", e.Path, e.Problem) }

// Add takes a copy of a binary into the folder.
func (f *Folder) Add(arch, path string) (Agent, error) {
	machine, known := machines[arch]
	if !known {
		return Agent{}, &BadAgentError{path, fmt.Sprintf("architecture %.20q is not served; use amd64, arm64, ppc64le, s390x or riscv64", arch)}
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return Agent{}, &BadAgentError{path, "cannot be read; give the path of mcsnap-agent for " + arch}
	case !info.Mode().IsRegular() || info.Size() == 0 || info.Size() > MaxSize:
		return Agent{}, &BadAgentError{path, fmt.Sprintf("is not a file of 1 to %d bytes; give the path of mcsnap-agent for %s", MaxSize, arch)}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return Agent{}, &BadAgentError{path, "cannot be read; make it readable for this user"}
	}
	binary, err := elf.NewFile(bytes.NewReader(raw))
	if err != nil || binary.Machine != machine {
		return Agent{}, &BadAgentError{path, fmt.Sprintf("is not an ELF binary for %s; build it with GOARCH=%s", arch, arch)}
	}
	sum := sha512.Sum512(raw)
	a := Agent{Arch: arch, SHA512: hex.EncodeToString(sum[:])}
	if _, _, err := f.Read(context.Background(), a.SHA512); err == nil {
		return a, nil
	}
	zipped, err := compress(raw)
	if err != nil {
		return Agent{}, fmt.Errorf("agents: %w", err)
	}
	// The plain form last: a binary that is there at all is there in both forms.
	if err := durable.WriteFile(f.path(a.SHA512)+".gz", zipped, 0o644); err != nil {
		return Agent{}, fmt.Errorf("agents: %w", err)
	}
	if err := durable.WriteFile(f.path(a.SHA512), raw, 0o644); err != nil {
		return Agent{}, fmt.Errorf("agents: %w", err)
	}
	return a, nil
}

func (f *Folder) path(sum string) string { return filepath.Join(f.dir, "sha512-"+sum) }

// Read returns a binary and its gzip form, both verified against the hash. store.ErrNotFound means that this folder
// never had it; any other error that it is damaged or unreadable.
func (f *Folder) Read(_ context.Context, sum string) (raw, gz []byte, err error) {
	raw, err = os.ReadFile(f.path(sum))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("agent sha512-%.12s…: %w", sum, store.ErrNotFound)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("agents: %w", err)
	}
	if !matches(raw, sum) {
		return nil, nil, fmt.Errorf("agents: %s is damaged; remove it and start the server with its --agent again", f.path(sum))
	}
	gz, err = os.ReadFile(f.path(sum) + ".gz")
	if err == nil {
		if inflated, fault := inflate(gz); fault == nil && matches(inflated, sum) {
			return raw, gz, nil
		}
	}
	gz, err = compress(raw) // damaged or gone, but made from what is good
	return raw, gz, err
}

func matches(data []byte, sum string) bool {
	got := sha512.Sum512(data)
	want, err := hex.DecodeString(sum)
	return err == nil && slices.Equal(got[:], want)
}

func compress(raw []byte) ([]byte, error) {
	var zipped bytes.Buffer
	z, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(raw); err != nil {
		return nil, err
	}
	err = z.Close()
	return zipped.Bytes(), err
}

func inflate(zipped []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, MaxSize+1))
}
