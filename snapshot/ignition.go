// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// specs are the Ignition spec versions that Embed and Extract read: those a node can be served.
var specs = []string{"2.2.0", "3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0", "3.6.0"}

// gzipUnknown are the versions whose Ignitions cannot read gzip from a data URL, though their parsers accept it.
var gzipUnknown = []string{"2.2.0", "3.0.0"}

// fileEntry is what Embed writes into storage.files, in the fields that 2.2 and 3.x share.
type fileEntry struct {
	Filesystem string       `json:"filesystem,omitempty"` // 2.x only
	Path       string       `json:"path"`
	Mode       int          `json:"mode"`
	Overwrite  bool         `json:"overwrite"`
	Contents   fileContents `json:"contents"`
}

type fileContents struct {
	Source       string           `json:"source"`
	Compression  string           `json:"compression,omitempty"`
	Verification fileVerification `json:"verification"`
}

type fileVerification struct {
	Hash string `json:"hash"`
}

// EncodeFile returns the snapshot as the contents of a file in an Ignition config of the given spec version: gzip in a
// base64 data URL from 3.1 on, plain base64 below (see docs/snapshot-format.md).
func EncodeFile(s *Snapshot, version string) (source, compression string) {
	if slices.Contains(gzipUnknown, version) {
		return contents.Base64(s.Bytes()), ""
	}
	return contents.Base64(contents.Compress(s.Bytes())), contents.Gzip
}

// Embed returns a copy of an Ignition config (JSON, spec 2.2 or 3.0 to 3.6) that also writes s to [Path], mode 0600. A
// file at that path, however it is spelled, is replaced; a directory or link in the way is a [PathTakenError]. All else
// in the config, unknown fields included, stays as it is.
func Embed(ignition []byte, s *Snapshot) ([]byte, error) {
	config, version, err := openIgnition(ignition)
	if err != nil {
		return nil, err
	}
	storage, err := optionalMembers(config["storage"], "/storage")
	if err != nil {
		return nil, err
	}
	for _, kind := range []string{"directories", "links"} {
		nodes, err := elements(storage[kind], "/storage/"+kind)
		if err != nil {
			return nil, err
		}
		for _, node := range nodes {
			at := nodePath(node)
			if at == Path || kind == "links" && strings.HasPrefix(Path, at+"/") {
				return nil, &PathTakenError{Path: at, As: map[string]string{"directories": "directory", "links": "link"}[kind]}
			}
		}
	}
	files, err := elements(storage["files"], "/storage/files")
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(file json.RawMessage) bool { return nodePath(file) == Path })

	entry := fileEntry{Path: Path, Mode: 0o600, Overwrite: true}
	entry.Contents.Source, entry.Contents.Compression = EncodeFile(s, version)
	entry.Contents.Verification.Hash = contents.Verification(s.Bytes())
	if strings.HasPrefix(version, "2.") {
		entry.Filesystem = "root"
	}
	storage["files"] = mustMarshal(append(files, mustMarshal(entry)))
	config["storage"] = mustMarshal(storage)
	return mustMarshal(config), nil
}

// Extract takes the snapshot out of an Ignition config and verifies it.
func Extract(ignition []byte) (*Snapshot, error) {
	config, _, err := openIgnition(ignition)
	if err != nil {
		return nil, err
	}
	storage, err := optionalMembers(config["storage"], "/storage")
	if err != nil {
		return nil, err
	}
	files, err := elements(storage["files"], "/storage/files")
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(files, func(file json.RawMessage) bool { return nodePath(file) == Path })
	if at < 0 {
		return nil, &NoSnapshotError{Reason: "no file " + Path}
	}
	var entry fileEntry
	if err := json.Unmarshal(files[at], &entry); err != nil {
		return nil, &NoSnapshotError{Reason: fmt.Sprintf("/storage/files/%d is not a file entry", at)}
	}
	sealed, err := contents.Decode(entry.Contents.Source, entry.Contents.Compression, MaxSealed)
	switch {
	case errors.Is(err, contents.ErrTooLarge):
		return nil, &TooLargeError{What: "the snapshot", Limit: MaxSealed}
	case err != nil:
		return nil, &NoSnapshotError{Reason: fmt.Sprintf("/storage/files/%d: %v", at, err)}
	}
	return Open(sealed)
}

// openIgnition takes an Ignition config apart and checks that its spec version is one we serve.
func openIgnition(ignition []byte) (config map[string]json.RawMessage, version string, err error) {
	if err := scan(ignition); err != nil {
		return nil, "", err
	}
	var head struct {
		Ignition struct {
			Version string `json:"version"`
		} `json:"ignition"`
	}
	if err := json.Unmarshal(ignition, &head); err != nil || !slices.Contains(specs, head.Ignition.Version) {
		return nil, "", &NoSnapshotError{Reason: "/ignition/version is not one of " + strings.Join(specs, ", ")}
	}
	config, err = optionalMembers(ignition, "/")
	return config, head.Ignition.Version, err
}

func optionalMembers(object json.RawMessage, field string) (map[string]json.RawMessage, error) {
	taken := map[string]json.RawMessage{}
	if len(object) > 0 && json.Unmarshal(object, &taken) != nil {
		return nil, &NoSnapshotError{Reason: field + " is not an object"}
	}
	if taken == nil { // null
		taken = map[string]json.RawMessage{}
	}
	return taken, nil
}

func elements(array json.RawMessage, field string) ([]json.RawMessage, error) {
	var taken []json.RawMessage
	if len(array) > 0 && json.Unmarshal(array, &taken) != nil {
		return nil, &NoSnapshotError{Reason: field + " is not a list"}
	}
	return taken, nil
}

// nodePath is where a file, directory or link entry lands, so that "/etc/../etc/x" is known for what it is.
func nodePath(entry json.RawMessage) string {
	var node struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(entry, &node) != nil || node.Path == "" {
		return ""
	}
	return path.Clean(node.Path)
}
