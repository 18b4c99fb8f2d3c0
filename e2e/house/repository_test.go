// SPDX-License-Identifier: Apache-2.0

package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const top = "../.."

// The repository keeps its own rules.
func TestRepository(t *testing.T) {
	packages, files := listPackages(t), readFiles(t, top)
	entries, patterns := topEntries(t)
	for rule, faults := range map[string][]string{
		"imports follow the arrows":         Imports(packages),
		"packages say what they are for":    Comments(packages),
		"the top level is fixed":            TopLevel(entries, patterns),
		"files begin with the licence":      Beginnings(files),
		"nothing is put off, nothing skips": Unfinished(files),
		"files are written through durable": DurableWrites(files),
	} {
		t.Run(rule, func(t *testing.T) {
			for _, fault := range faults {
				t.Error(fault)
			}
		})
	}
}

// Whatever a generator makes is committed as it makes it now.
func TestGeneratedFilesAreFresh(t *testing.T) {
	for _, g := range generators {
		t.Run(g.folder, func(t *testing.T) {
			made, err := g.make()
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range Stale(made, readFiles(t, filepath.Join(top, g.folder)), g.remedy) {
				t.Error(strings.Replace(g.folder+"/"+fault, "/.:", ":", 1))
			}
		})
	}
}

func listPackages(t *testing.T) (packages []Package) {
	t.Helper()
	list := exec.Command("go", "list", "-json=ImportPath,Name,Doc,GoFiles,Imports,TestImports,XTestImports,Deps", "./...")
	list.Dir, list.Stderr = top, os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p Package
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("read go list's answer: %v", err)
		}
		packages = append(packages, p)
	}
}

// readFiles reads every file below a folder, but for what git ignores at the top and git's own.
func readFiles(t *testing.T, folder string) (files []File) {
	t.Helper()
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && (relative == ".git" || relative == "bin" || relative == ".cache"):
			return filepath.SkipDir
		case !entry.Type().IsRegular() || relative == ".git":
			return nil
		}
		text, err := os.ReadFile(name)
		files = append(files, File{Path: filepath.ToSlash(relative), Text: text})
		return err
	})
	if err != nil {
		t.Fatalf("read the repository: %v", err)
	}
	return files
}

func topEntries(t *testing.T) (entries, patterns []string) {
	t.Helper()
	dir, err := os.ReadDir(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range dir {
		entries = append(entries, entry.Name())
	}
	ignored, err := os.ReadFile(filepath.Join(top, ".gitignore"))
	if err != nil {
		t.Fatal(err)
	}
	return entries, strings.Fields(string(ignored))
}
