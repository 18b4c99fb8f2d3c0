// SPDX-License-Identifier: Apache-2.0

package change

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// The daemon's own files, all below the folder that the agent has too.
const (
	Dir          = "/var/lib/mcsnap"
	updateDir    = Dir + "/update" // one update while it lasts
	journalPath  = updateDir + "/journal.json"
	targetPath   = updateDir + "/target.json"
	originPath   = updateDir + "/origin.json"
	blobsDir     = updateDir + "/blobs"
	originalsDir = Dir + "/originals"
	currentPath  = Dir + "/current.json"

	maxJournal = 64 << 20
)

// blobs keeps contents by their digest.
type blobs struct {
	node *root.Root
	dir  string
}

func (b blobs) put(state State) error {
	if state.Kind != file {
		return nil
	}
	return b.node.WriteFile(path.Join(b.dir, state.Blob), state.content, 0o600)
}

func (b blobs) get(state State) ([]byte, error) {
	if state.Kind != file {
		return nil, nil
	}
	content, err := b.node.ReadFile(path.Join(b.dir, state.Blob), contents.MaxInflated)
	if err != nil {
		return nil, fmt.Errorf("reading what was kept for an update: %w", err)
	}
	return content, nil
}

// original is what a path was before a config took it. Dir marks a folder that the daemon made.
type original struct {
	Path  string `json:"path"`
	State State  `json:"state"`
	Dir   bool   `json:"dir,omitempty"`
}

func originalPath(name string) string {
	sum := sha256.Sum256([]byte(name))
	return path.Join(originalsDir, hex.EncodeToString(sum[:])+".json")
}

// originalOf returns nil when the path had been taken before this daemon's time, or was not there.
func originalOf(node *root.Root, name string) (*original, error) {
	text, err := node.ReadFile(originalPath(name), maxJournal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o := &original{}
	if err := json.Unmarshal(text, o); err != nil || o.Path != name {
		return nil, fmt.Errorf("%s: not what was kept for %s; remove it to give that file up", originalPath(name), name)
	}
	if o.State.content, err = (blobs{node, originalsDir}).get(o.State); err != nil {
		return nil, err
	}
	return o, nil
}

func keepOriginal(node *root.Root, o original) error {
	if err := (blobs{node, originalsDir}).put(o.State); err != nil {
		return err
	}
	return writeJSON(node, originalPath(o.Path), o)
}

// forgetOriginal gives up what was kept for a path. Its content may be that of another original too, and so stays until
// none needs it (see sweepOriginals).
func forgetOriginal(node *root.Root, name string) error { return node.Remove(originalPath(name)) }

// sweepOriginals removes contents that no original names.
func sweepOriginals(node *root.Root) error {
	names, err := node.Names(originalsDir)
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, ".json") {
			text, err := node.ReadFile(path.Join(originalsDir, name), maxJournal)
			var o original
			if err == nil {
				err = json.Unmarshal(text, &o)
			}
			if err != nil {
				return fmt.Errorf("%s/%s: %w; remove it to give that file up", originalsDir, name, err)
			}
			used[o.State.Blob] = true
		}
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".json") && !used[name] {
			if err := node.Remove(path.Join(originalsDir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeJSON(node *root.Root, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return node.WriteFile(name, append(text, '\n'), 0o600)
}
