// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Layout is what `make image` leaves, read with no more than what the OCI's image specification says of it.
type Layout struct {
	// Digest is the index's, which a deployment names.
	Digest string
	// Images are by architecture.
	Images map[string]*Image
}

// Image is one architecture's.
type Image struct {
	Digest string
	Config struct {
		OS, Architecture string
		Config           struct {
			User       string
			Entrypoint []string
		}
	}
	// Files are what its layers hold, by absolute path.
	Files map[string]File
	// Bill is the bill of materials that is attached to it.
	Bill []byte
}

// File is a file of an image.
type File struct {
	*tar.Header
	Text []byte
}

type descriptor struct {
	MediaType, Digest, ArtifactType string
	Platform                        struct{ Architecture string }
}

type manifest struct {
	Config            descriptor
	Manifests, Layers []descriptor
	Subject           descriptor
}

// ReadLayout reads a layout and verifies every digest in it.
func ReadLayout(dir string) (*Layout, error) {
	text, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		return nil, fmt.Errorf("%w; make it with `make image`", err)
	}
	var top manifest
	if err := json.Unmarshal(text, &top); err != nil {
		return nil, err
	}
	l, bills := &Layout{Images: map[string]*Image{}}, map[string][]byte{}
	for _, d := range top.Manifests {
		var m manifest
		if err := blobInto(dir, d.Digest, &m); err != nil {
			return nil, err
		}
		if d.ArtifactType != "" {
			if bills[m.Subject.Digest], err = blob(dir, m.Layers[0].Digest); err != nil {
				return nil, err
			}
			continue
		}
		l.Digest = d.Digest
		for _, one := range m.Manifests {
			image, err := readImage(dir, one.Digest)
			if err != nil {
				return nil, err
			}
			if image.Config.Architecture != one.Platform.Architecture {
				return nil, fmt.Errorf("%s: the index says %s, the image %s", one.Digest, one.Platform.Architecture, image.Config.Architecture)
			}
			l.Images[one.Platform.Architecture] = image
		}
	}
	for _, image := range l.Images {
		image.Bill = bills[image.Digest]
	}
	return l, nil
}

func readImage(dir, digest string) (*Image, error) {
	var m manifest
	if err := blobInto(dir, digest, &m); err != nil {
		return nil, err
	}
	image := &Image{Digest: digest, Files: map[string]File{}}
	if err := blobInto(dir, m.Config.Digest, &image.Config); err != nil {
		return nil, err
	}
	for _, d := range m.Layers {
		packed, err := blob(dir, d.Digest)
		if err != nil {
			return nil, err
		}
		plain, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, fmt.Errorf("layer %s: %w", d.Digest, err)
		}
		for r := tar.NewReader(plain); ; {
			header, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("layer %s: %w", d.Digest, err)
			}
			text, err := io.ReadAll(r)
			if err != nil {
				return nil, fmt.Errorf("layer %s: %s: %w", d.Digest, header.Name, err)
			}
			image.Files["/"+strings.TrimSuffix(header.Name, "/")] = File{header, text}
		}
	}
	return image, nil
}

// Unpack lays the image's files out as a container's root.
func (i *Image) Unpack(root string) error {
	for path, f := range i.Files {
		at := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if f.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(at, 0o755); err != nil {
				return err
			}
			continue
		}
		if err := os.WriteFile(at, f.Text, os.FileMode(f.Mode)); err != nil {
			return err
		}
	}
	return nil
}

func blob(dir, digest string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, "blobs", strings.Replace(digest, ":", "/", 1)))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(text); digest != "sha256:"+hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("blob %s has another content", digest)
	}
	return text, nil
}

func blobInto(dir, digest string, into any) error {
	text, err := blob(dir, digest)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("blob %s: %w", digest, err)
	}
	return nil
}
