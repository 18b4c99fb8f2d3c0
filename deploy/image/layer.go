// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// file is a file on disk and where it is in the image.
type file struct {
	from, to string
	mode     int64
}

// layer packs files of root's, and the folders above them, with one date.
func layer(files []file, made time.Time) (v1.Layer, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	folders := map[string]bool{".": true}
	for _, f := range files {
		if err := folder(w, path.Dir(f.to), folders, made); err != nil {
			return nil, err
		}
		text, err := os.ReadFile(f.from)
		if err != nil {
			return nil, err
		}
		err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.to, Mode: f.mode, Size: int64(len(text)), ModTime: made, Format: tar.FormatPAX})
		if err == nil {
			_, err = w.Write(text)
		}
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.to, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

// folder packs a folder and those above it, each once.
func folder(w *tar.Writer, name string, packed map[string]bool, made time.Time) error {
	if packed[name] {
		return nil
	}
	if err := folder(w, path.Dir(name), packed, made); err != nil {
		return err
	}
	packed[name] = true
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: made, Format: tar.FormatPAX})
}
