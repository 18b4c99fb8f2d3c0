// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/mcsnap/mcsnap/e2e/commands/tree"
	"github.com/mcsnap/mcsnap/e2e/lab"
)

// `make install` puts everything below DESTDIR and PREFIX: programs that run, a page for each command with all of its
// flags, and completions that a shell can read. What `make build` made is installed as it is.
func TestInstall(t *testing.T) {
	top, err := lab.Top()
	if err != nil {
		t.Fatal(err)
	}
	dest := t.TempDir()
	install := exec.CommandContext(t.Context(), "make", "--old-file=build", "install", "DESTDIR="+dest, "PREFIX=/opt/mcsnap")
	install.Dir = top
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v (run `make build` first)\n%s", err, out)
	}
	programs, err := Trees(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	prefix := filepath.Join(dest, "opt/mcsnap")
	for _, program := range programs {
		run := exec.CommandContext(t.Context(), filepath.Join(prefix, "bin", program.Name), "--version")
		if out, err := run.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), program.Name+" version ") {
			t.Errorf("%s --version: %v, %s", program.Name, err, out)
		}
		for path, c := range program.All() {
			if words := strings.Fields(path); len(words) < 2 || words[1] != "help" && words[1] != "completion" {
				checkPage(t, filepath.Join(prefix, "share/man/man1", strings.ReplaceAll(path, " ", "-")+".1"), c)
			}
		}
		bash := read(t, filepath.Join(prefix, "share/bash-completion/completions", program.Name))
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(bash), ""); err != nil || !bytes.Contains(bash, []byte("complete -o default -F __start_"+program.Name)) {
			t.Errorf("the completion of %s for bash: %v", program.Name, err)
		}
		for _, name := range []string{"zsh/site-functions/_" + program.Name, "fish/vendor_completions.d/" + program.Name + ".fish"} {
			if text := read(t, filepath.Join(prefix, "share", name)); !bytes.Contains(text, []byte(program.Name)) {
				t.Errorf("%s does not complete %s", name, program.Name)
			}
		}
	}
	outside, err := filepath.Glob(filepath.Join(dest, "*"))
	if err != nil || len(outside) != 1 {
		t.Errorf("something was put outside of PREFIX: %v, %v", outside, err)
	}
}

func checkPage(t *testing.T, file string, c *tree.Command) {
	t.Helper()
	page := strings.ReplaceAll(string(read(t, file)), `\-`, "-")
	if !strings.Contains(page, ".TH ") || !strings.Contains(page, ".SH SYNOPSIS") {
		t.Errorf("%s is no man page", file)
	}
	for _, f := range c.Flags {
		if !f.Hidden && f.Name != "version" && !strings.Contains(page, "--"+f.Name) {
			t.Errorf("%s: no --%s", file, f.Name)
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	return text
}
