// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	kyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/snapshot"
)

// file is what one file held when it was last good, and what is wrong with it now.
type file struct {
	path string
	name string   // the path as it is told to others: within the folder where it lies there
	data []byte   // while it is being parsed; nil otherwise
	sum  [32]byte // of the bytes that were looked at last, good or not
	// problem is one line naming the file, the fault and the remedy; "" when the file is good now.
	problem string
	// holds names the rendered config that a file with a problem holds, "" where that cannot be read.
	holds string
	// foreign reports that it holds an object of another kind.
	foreign bool
	// good reports that the file has been good at least once; the fields below are from then.
	good bool
	// retry asks for another look even if the bytes stay the same: the fault was not the file's.
	retry bool

	pool       source.Pool              // machine-pools
	config     string                   // machine-configs: the config's name,
	digest     snapshot.Digest          // and its digest, "" when it is not a rendered one
	controller *source.ControllerConfig // controller-config
	kubeconfig []byte
	expires    time.Time
	warned     bool
}

// stem is the file's name without its folder and extension: what a file that cannot be read is likely to hold.
func (f *file) stem() string {
	base := filepath.Base(f.path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// told is how a path is named in problems, which reach clients too: where the folder lies is no business of theirs.
func (s *Source) told(path string) string {
	if within, err := filepath.Rel(s.cfg.Dir, path); err == nil && filepath.IsLocal(within) {
		return within
	}
	return path
}

// scan takes every object file of a folder, in the order of their names. A folder that does not exist is an empty one:
// whoever writes it may not have come that far.
func (s *Source) scan(folder string, problems map[string]bool, parse func(*file) error) []*file {
	dir := filepath.Join(s.cfg.Dir, folder)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) && len(s.remembered(dir)) > 0 {
		problems[fmt.Sprintf("%s: the folder is gone, and was there before; put it back, or empty it first if nothing in it counts any more", folder)] = true
		return s.remembered(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		problems[fmt.Sprintf("%s: cannot be listed (%v); make it readable for this user", folder, reason(err))] = true
		return s.remembered(dir)
	}
	var files []*file
	present := map[string]bool{}
	for _, entry := range entries {
		if !isObjectFile(entry.Name()) {
			continue
		}
		f := s.take(filepath.Join(dir, entry.Name()), parse)
		if f == nil {
			continue
		}
		if f.problem != "" {
			problems[f.problem] = true
		}
		present[f.path] = true
		files = append(files, f)
	}
	for _, f := range s.remembered(dir) { // what left the folder is forgotten here; the store keeps its configs
		if !present[f.path] {
			delete(s.files, f.path)
		}
	}
	return files
}

// remembered returns the files of a folder as they were last seen.
func (s *Source) remembered(dir string) []*file {
	var files []*file
	for _, path := range slices.Sorted(maps.Keys(s.files)) {
		if filepath.Dir(path) == dir && path != s.cfg.Kubeconfig {
			files = append(files, s.files[path])
		}
	}
	return files
}

// isObjectFile leaves out what editors, rsync and Kubernetes' volume mounts put next to the files that count.
func isObjectFile(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return !strings.HasPrefix(name, ".")
	}
	return false
}

// take reads one file and parses it if its bytes are new. On a fault the file keeps what it held before.
func (s *Source) take(path string, parse func(*file) error) *file {
	f := s.files[path]
	if f == nil {
		f = &file{path: path, name: s.told(path)}
		s.files[path] = f
	}
	data, err := readObject(path)
	if err != nil {
		f.problem = fmt.Sprintf("%s: %v", f.name, err)
		f.retry = true
		return f
	}
	sum := sha256.Sum256(data)
	if sum == f.sum && !f.retry && (f.good || f.problem != "") {
		return f
	}
	next := *f
	next.data, next.sum, next.problem, next.good, next.retry, next.warned = data, sum, "", true, false, false
	next.foreign, next.holds = false, ""
	if err := oneDocument(data); err != nil {
		f.fail(sum, false, "", err)
		return f
	}
	if err := parse(&next); err != nil {
		f.fail(sum, next.retry, next.holds, err)
		return f
	}
	next.data = nil
	*f = next
	return f
}

// fail notes what is wrong and keeps what the file held before.
func (f *file) fail(sum [32]byte, retry bool, holds string, err error) {
	f.sum, f.retry, f.holds = sum, retry, holds
	f.problem = fmt.Sprintf("%s: %v", f.name, err)
	_, f.foreign = errors.AsType[*foreignError](err)
}

func readObject(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot be read (%v); make it readable for this user", reason(err))
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file; replace it by one")
	case info.Size() > snapshot.MaxSealed:
		return nil, fmt.Errorf("has %d bytes, the limit is %d; split what it holds", info.Size(), snapshot.MaxSealed)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot be read (%v); make it readable for this user", reason(err))
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errEmpty
	}
	return data, nil
}

// oneDocument refuses a second YAML document: readers would take the first and drop the rest without a word.
func oneDocument(data []byte) error {
	documents := 0
	reader := kyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		doc, err := reader.Read()
		if err != nil {
			return nil // io.EOF; what is wrong within a document is for the parser to say
		}
		if len(bytes.TrimSpace(doc)) > 0 {
			documents++
		}
		if documents > 1 {
			return errors.New("holds several YAML documents; write one object per file")
		}
	}
}

// reason is the operating system's word for an error, without the path that the caller names already.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
