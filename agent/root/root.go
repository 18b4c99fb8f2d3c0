// SPDX-License-Identifier: Apache-2.0

// Package root is a node's file system below a folder: "/" on the node itself, any folder for a scratch node. Every
// path is a path of the node; symbolic links, absolute ones too, are followed as on that node and never lead out of
// the folder. What is written survives a power cut (package durable).
package root

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mcsnap/mcsnap/snapshot/durable"
)

// ErrTooLarge says that a file is larger than its reader allows.
var ErrTooLarge = errors.New("larger than its limit")

// Root is a node's root folder. It is safe for use by several goroutines.
type Root struct {
	dir   string
	root  *os.Root
	files durable.Files
}

// Open opens the folder as a node's root. All that changes below it goes through files, which tests replace to cut the
// power; nil means the real ones.
func Open(dir string, files durable.FS) (*Root, error) {
	if dir == "" { // would be whatever folder this process happens to be in
		return nil, errors.New("root: empty; name the folder of a node's root, / on the node itself")
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("root %s: %w", dir, err)
	}
	opened, err := os.OpenRoot(absolute)
	if err != nil {
		return nil, fmt.Errorf("root %s: %w; name the folder of a node's root", dir, err)
	}
	return &Root{dir: absolute, root: opened, files: durable.With(files)}, nil
}

// Close gives the folder back. Paths that were resolved stay good.
func (r *Root) Close() error { return r.root.Close() }

// Dir is the folder's absolute path.
func (r *Root) Dir() string { return r.dir }

// maxLinks is how many symbolic links one path may have, as in Linux.
const maxLinks = 40

// Resolve returns where a path of the node is, relative to the root and free of symbolic links. The last element itself
// is not followed when it is a link. What does not exist yet resolves to where it would be made.
func (r *Root) Resolve(name string) (string, error) { return r.resolve(name, func(string) {}) }

// Links lists the symbolic links that the way to a path of the node leads through, each where it is in deed. The path itself
// is not among them when it is one.
func (r *Root) Links(name string) (links []string, err error) {
	_, err = r.resolve(name, func(link string) { links = append(links, "/"+link) })
	return links, err
}

func (r *Root) resolve(name string, followed func(link string)) (string, error) {
	done, todo := ".", split(name)
	for links := 0; len(todo) > 0; {
		element := todo[0]
		todo = todo[1:]
		if element == ".." {
			done = path.Dir(done) // the parent of "." is "."
			continue
		}
		next := path.Join(done, element)
		if len(todo) == 0 {
			return next, nil
		}
		info, err := r.root.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			done = next
			continue
		case err != nil:
			return "", named(name, err)
		case info.Mode()&fs.ModeSymlink == 0:
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s: more than %d symbolic links", name, maxLinks)
		}
		followed(next)
		target, err := r.root.Readlink(next)
		if err != nil {
			return "", named(name, err)
		}
		if path.IsAbs(target) {
			done = "."
		}
		todo = append(split(target), todo...)
	}
	return done, nil
}

func split(name string) []string {
	var elements []string
	for element := range strings.SplitSeq(name, "/") {
		if element != "" && element != "." {
			elements = append(elements, element)
		}
	}
	return elements
}

// Path is where a path of the node is on this machine.
func (r *Root) Path(name string) (string, error) {
	resolved, err := r.Resolve(name)
	if err != nil {
		return "", err
	}
	return filepath.Join(r.dir, resolved), nil
}

// Lstat describes what a path of the node is, a link itself where it is one.
func (r *Root) Lstat(name string) (fs.FileInfo, error) {
	resolved, err := r.Resolve(name)
	if err != nil {
		return nil, err
	}
	info, err := r.root.Lstat(resolved)
	return info, named(name, err)
}

// named puts the path of the node into an error of the operating system, which knows only the way from the root.
func named(name string, err error) error {
	if at, is := errors.AsType[*fs.PathError](err); is {
		return &fs.PathError{Op: at.Op, Path: name, Err: at.Err}
	}
	return err
}

// Exists tells whether the path of the node is there, be it a link to nothing.
func (r *Root) Exists(name string) (bool, error) {
	_, err := r.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// ReadFile reads a regular file of at most limit bytes. Errors name the path of the node.
func (r *Root) ReadFile(name string, limit int64) ([]byte, error) {
	resolved, err := r.Resolve(name)
	if err != nil {
		return nil, err
	}
	// A pipe in the file's place must not hang a boot: it is never opened.
	info, err := r.root.Lstat(resolved)
	if err != nil {
		return nil, named(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is %s and no regular file", name, kind(info))
	}
	file, err := r.root.Open(resolved)
	if err != nil {
		return nil, named(name, err)
	}
	defer file.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, named(name, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: %w of %d bytes", name, ErrTooLarge, limit)
	}
	return data, nil
}

func kind(info fs.FileInfo) string {
	switch info.Mode().Type() {
	case fs.ModeDir:
		return "a folder"
	case fs.ModeSymlink:
		return "a symbolic link"
	}
	return "a special file"
}
