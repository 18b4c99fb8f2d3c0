// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/snapshot/store"
)

// program returns the smallest ELF file of this machine, with something after its head.
func program(t *testing.T, more string) string {
	t.Helper()
	var file bytes.Buffer
	head := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machines[runtime.GOARCH]), Version: uint32(elf.EV_CURRENT),
		Ehsize: 64, Phentsize: 56, Shentsize: 64,
	}
	if err := binary.Write(&file, binary.LittleEndian, head); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mcsnap-agent")
	file.WriteString(strings.Repeat(more, 100))
	if err := os.WriteFile(path, file.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAddAndRead(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	folder, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	old, err := folder.Add(runtime.GOARCH, program(t, "yesterday's"))
	if err != nil {
		t.Fatal(err)
	}
	now, err := folder.Add(runtime.GOARCH, program(t, "today's"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir) // after a restart
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []Agent{old, now} {
		raw, gz, err := again.Read(ctx, a.SHA512)
		if err != nil || !matches(raw, a.SHA512) {
			t.Fatalf("%s: %v", a.SHA512, err)
		}
		if inflated, err := inflate(gz); err != nil || !matches(inflated, a.SHA512) {
			t.Errorf("the gzip form holds something else: %v", err)
		}
	}
	if _, _, err := again.Read(ctx, strings.Repeat("0", 128)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an unknown agent: %v", err)
	}
}

func TestDamageIsNeverServed(t *testing.T) {
	ctx := context.Background()
	folder, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := program(t, "")
	a, err := folder.Add(runtime.GOARCH, path)
	if err != nil {
		t.Fatal(err)
	}
	flip := func(path string) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 1
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	flip(folder.path(a.SHA512) + ".gz")
	if _, gz, err := folder.Read(ctx, a.SHA512); err != nil {
		t.Error(err)
	} else if inflated, err := inflate(gz); err != nil || !matches(inflated, a.SHA512) {
		t.Error("a damaged gzip form was not made anew")
	}
	flip(folder.path(a.SHA512))
	if _, _, err := folder.Read(ctx, a.SHA512); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("a damaged binary: %v", err)
	}
	if _, err := folder.Add(runtime.GOARCH, path); err != nil { // the next start mends it
		t.Fatal(err)
	}
	if _, _, err := folder.Read(ctx, a.SHA512); err != nil {
		t.Error(err)
	}
}

func TestAddRefuses(t *testing.T) {
	folder, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "agent.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	for _, c := range []struct{ name, arch, path, want string }{
		{"an unknown architecture", "i386", script, "not served"},
		{"no file", runtime.GOARCH, "/nowhere/agent", "/nowhere/agent"},
		{"a folder", runtime.GOARCH, t.TempDir(), "is not a file"},
		{"a script", runtime.GOARCH, script, "not an ELF binary"},
		{"another machine's", other, program(t, ""), "not an ELF binary for " + other},
	} {
		_, err := folder.Add(c.arch, c.path)
		if _, bad := errors.AsType[*BadAgentError](err); !bad || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
