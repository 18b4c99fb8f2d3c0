// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/server"
)

// These tests see what an operator sees: the built program.
func TestMain(m *testing.M) { server.Main(m) }

// served waits until the folder was taken up.
func served(s *server.Test) { s.Says("a pool is served") }

// smallAgent writes the smallest ELF file of this machine.
func smallAgent(t *testing.T) string {
	t.Helper()
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	var file bytes.Buffer
	if err := binary.Write(&file, binary.LittleEndian, elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Ehsize: 64, Phentsize: 56, Shentsize: 64,
	}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mcsnap-agent")
	if err := os.WriteFile(path, file.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// copyFolder copies the example folder, so that a test may change it.
func copyFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "folder")
	if err := os.CopyFS(dir, os.DirFS("testdata/folder")); err != nil {
		t.Fatal(err)
	}
	return dir
}
