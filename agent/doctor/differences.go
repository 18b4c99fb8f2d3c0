// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// drift names the files of the config that are not on disk as they were rendered. Overlays differ on purpose.
func drift(node *root.Root, s *snapshot.Snapshot) []string {
	onPurpose := map[string]bool{}
	for _, overlay := range s.Overlays() {
		onPurpose[overlay.Path] = true
	}
	var lines []string
	for _, file := range handoff.Contents(s).Files {
		if file.SHA256 == "" || onPurpose[file.Name] {
			continue
		}
		content, err := node.ReadFile(file.Name, contents.MaxInflated)
		sum := sha256.Sum256(content)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			lines = append(lines, "on disk: "+file.Name+" is missing")
		case err != nil:
			lines = append(lines, "on disk: "+err.Error())
		case hex.EncodeToString(sum[:]) != file.SHA256:
			lines = append(lines, fmt.Sprintf("on disk: %s has other content (%d bytes, rendered were %d)", file.Name, len(content), file.Size))
		}
	}
	return lines
}

// against compares the snapshot with the config that the cluster wants the pool to have.
func against(s, target *snapshot.Snapshot) []string {
	differences := handoff.Differences(handoff.Contents(s), handoff.Contents(target))
	if len(differences) == 0 {
		return []string{"content is the same as the cluster target " + target.Name()}
	}
	return []string{"content differs from cluster target " + target.Name() + " in " + strings.Join(differences, "; ")}
}
