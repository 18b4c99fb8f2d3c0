// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
)

// Stage is how far the hand-over of a record is.
type Stage string

const (
	// Pending stands in the record while the snapshot that was fetched is put back and handed over: nothing may take it
	// for done (field case 98).
	Pending Stage = "pending"
	// Done means that the daemon's current config is on stable storage.
	Done Stage = "done"
)

// Record is /var/lib/mcsnap/handover.json. It is written when a hand-over is done and stays as it is on later boots.
type Record struct {
	Stage    Stage           `json:"stage"`
	Name     string          `json:"name"`
	Digest   snapshot.Digest `json:"digest"`
	Source   Source          `json:"source"`
	Attempts int             `json:"attempts"` // requests it took to get the snapshot back; 0 when it was embedded
	BootID   string          `json:"bootID"`   // of the boot that did it
	Version  string          `json:"version"`  // of the agent that did it

	// Overlays are the snapshot's: servers keep snapshots without them, so that a snapshot which is lost whole later on
	// would come back without.
	Overlays []snapshot.Overlay `json:"overlays,omitempty"`
}

// ReadRecord returns nil when there is no record, or none that can be parsed: it is a report and decides nothing.
func ReadRecord(node *root.Root) (*Record, error) {
	text, err := node.ReadFile(RecordPath, maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, machineError(err)
	}
	record := &Record{}
	if json.Unmarshal(text, record) != nil {
		return nil, nil
	}
	return record, nil
}

// writeRecord writes how far the hand-over is. What a run that was cut has written about the origin of this snapshot
// stands; a record that is done is left alone.
func (b *boot) writeRecord(stage Stage) error {
	before, err := ReadRecord(b.Node)
	if err != nil {
		return err
	}
	if before != nil && before.Digest == b.snap.Digest() {
		if before.Stage == Done {
			b.record = *before
			return nil
		}
		if before.Source == Fetched && b.record.Source == Embedded {
			b.record.Source, b.record.Attempts = Fetched, before.Attempts
		}
	}
	b.record.Stage, b.record.Name, b.record.Digest = stage, b.snap.Name(), b.snap.Digest()
	b.record.BootID, b.record.Version, b.record.Overlays = b.BootID, b.Version, b.snap.Overlays()
	text, err := json.MarshalIndent(b.record, "", "  ")
	if err != nil {
		return err
	}
	return machineError(b.Node.WriteFile(RecordPath, append(text, '\n'), 0o600))
}

// overlaysStillTrue saves the list of overlays of a snapshot that is damaged or lost, from the file or from the record of
// an earlier boot: servers keep snapshots without it.
func (b *boot) overlaysStillTrue() []snapshot.Overlay {
	var damaged struct {
		Overlays []snapshot.Overlay `json:"overlays"`
	}
	if json.Unmarshal(b.raw, &damaged) == nil && len(damaged.Overlays) > 0 {
		return StillTrue(b.Node, damaged.Overlays)
	}
	if record, err := ReadRecord(b.Node); err == nil && record != nil && record.Digest == b.born.Digest {
		return StillTrue(b.Node, record.Overlays)
	}
	return nil
}

// StillTrue takes those overlays whose file has the content they claim, which no damage can fake.
func StillTrue(node *root.Root, overlays []snapshot.Overlay) []snapshot.Overlay {
	var kept []snapshot.Overlay
	for _, overlay := range overlays {
		if !path.IsAbs(overlay.Path) {
			continue
		}
		content, err := node.ReadFile(overlay.Path, maxCurrent)
		sum := sha256.Sum256(content)
		if err == nil && strings.EqualFold(overlay.SHA256, hex.EncodeToString(sum[:])) {
			kept = append(kept, overlay)
		}
	}
	return kept
}
