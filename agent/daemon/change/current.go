// SPDX-License-Identifier: Apache-2.0

package change

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/snapshot"
)

// LostError says that nothing on the node says for certain which config it is at.
type LostError struct {
	Digest  snapshot.Digest // of the config, "" when that is lost too
	Problem error           // names the file
}

func (e *LostError) Error() string {
	want := "its digest is lost too"
	if e.Digest != "" {
		want = "digest wanted: " + string(e.Digest)
	}
	return fmt.Sprintf("%v (%s); put that file back, or run mcsnap-agent doctor, which says who has it", e.Problem, want)
}
func (e *LostError) Unwrap() error { return e.Problem }

// Current is the config that the node is at. The daemon's own record says it. Without one it is the config that another
// daemon left as the current one, if that had moved on, and otherwise the one the node was born with. A file that is
// damaged or lost is made up for by the config that was published for others, where its digest is the right one.
func (u *Updater) Current() (*snapshot.Snapshot, error) {
	own, digest, err := u.open(currentPath)
	if err == nil {
		return own, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		if digest == "" {
			digest = u.lastNoted()
		}
		return u.borneOut(digest, err)
	}
	born, digest, err := u.open(snapshot.Path)
	if birth, _ := handoff.Birth(u.Node); birth != "" && (err != nil || digest == "") {
		digest = birth
	}
	published := u.published()
	if published != nil && born != nil && published.Name() != born.Name() && !handoff.Contents(published).Empty() {
		return published, nil
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New(snapshot.Path + ": missing, and with it what this node was born with")
		}
		return u.borneOut(digest, err)
	}
	return born, nil
}

// open reads a sealed file. Where it does not verify, digest is what the file itself says of it.
func (u *Updater) open(name string) (s *snapshot.Snapshot, digest snapshot.Digest, err error) {
	sealed, err := u.Node.ReadFile(name, snapshot.MaxSealed)
	if err != nil {
		return nil, "", err
	}
	if s, err = snapshot.Open(sealed); err == nil {
		return s, s.Digest(), nil
	}
	var head struct{ Digest string }
	if json.Unmarshal(bytes.ToValidUTF8(sealed, nil), &head) == nil {
		digest, _ = snapshot.ParseDigest(head.Digest)
	}
	return nil, digest, fmt.Errorf("%s: %w", name, err)
}

// borneOut is the published config, if it is the one of a digest.
func (u *Updater) borneOut(digest snapshot.Digest, problem error) (*snapshot.Snapshot, error) {
	if s := u.published(); s != nil && s.Digest() == digest {
		return u.overlaid(s), nil
	}
	return nil, &LostError{digest, problem}
}

// lastNoted is the digest of the config that the node was last seen to be at.
func (u *Updater) lastNoted() snapshot.Digest {
	var noted otherwise
	if text, err := u.Node.ReadFile(otherwisePath, maxJournal); err != nil || json.Unmarshal(text, &noted) != nil {
		return ""
	}
	return noted.Digest
}

// overlaid gives a snapshot that comes without its overlays those of its birth.
func (u *Updater) overlaid(s *snapshot.Snapshot) *snapshot.Snapshot {
	if record, err := handoff.ReadRecord(u.Node); err == nil && record != nil && record.Digest == s.Digest() {
		return s.WithOverlays(handoff.StillTrue(u.Node, record.Overlays))
	}
	return s
}

// published is the config that a daemon or the hand-over left for others, nil when there is none to be read.
func (u *Updater) published() *snapshot.Snapshot {
	text, err := u.Node.ReadFile(handoff.CurrentPath, snapshot.MaxSealed)
	if err != nil {
		return nil
	}
	var object struct {
		Metadata struct {
			OwnerReferences []struct{ Kind, Name string }
		}
	}
	pool := ""
	if json.Unmarshal(text, &object) == nil {
		for _, owner := range object.Metadata.OwnerReferences {
			if owner.Kind == "MachineConfigPool" {
				pool = owner.Name
			}
		}
	}
	s, err := snapshot.Seal(text, pool)
	if err != nil {
		return nil
	}
	return s
}

// bornAnew gives up what an earlier life of this machine left, when it was provisioned again and kept its /var: until
// bootstrap has ended the annotations name the snapshot, and no update was made.
func (u *Updater) bornAnew() error {
	birth, fresh := handoff.Birth(u.Node)
	if !fresh {
		return nil
	}
	own, err := u.Node.ReadFile(currentPath, snapshot.MaxSealed)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if s, failed := snapshot.Open(own); err == nil && failed == nil && s.Digest() == birth {
		return nil
	}
	u.Log.Info("the node was provisioned again: what an earlier life left is given up", "birth", birth)
	for _, name := range []string{journalPath, otherwisePath} {
		if err := u.Node.Remove(name); err != nil {
			return err
		}
	}
	names, err := u.Node.Names(originalsDir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := u.Node.Remove(originalsDir + "/" + name); err != nil {
			return err
		}
	}
	return u.Node.Remove(currentPath)
}

// adopt makes the config that the node is found at the daemon's own record, so that the loss of the file it was born with
// is none. What is lost already is told by whoever asks for it.
func (u *Updater) adopt() error {
	if there, err := u.Node.Exists(currentPath); there || err != nil {
		return err
	}
	s, err := u.Current()
	if _, lost := errors.AsType[*LostError](err); lost {
		return nil
	}
	if err != nil {
		return err
	}
	return u.Node.WriteFile(currentPath, s.Bytes(), 0o600)
}

// Recover gets the config that the node is at back from a server, by its digest, after Current has failed.
func (u *Updater) Recover(ctx context.Context, lost *LostError, fetch func(context.Context, snapshot.Digest) (*snapshot.Snapshot, error)) (*snapshot.Snapshot, error) {
	if lost.Digest == "" {
		return nil, lost
	}
	s, err := fetch(ctx, lost.Digest)
	if err != nil {
		return nil, fmt.Errorf("%w; it could not be fetched by digest: %w", lost, err)
	}
	s = u.overlaid(s)
	u.Log.Info("the config was fetched again", "name", s.Name(), "digest", s.Digest(), "because", lost.Problem)
	return s, u.Node.WriteFile(currentPath, s.Bytes(), 0o600)
}

// Restore puts right, from a config that was verified, the two copies of it that the node has: the daemon's own record,
// and the snapshot of its birth as long as the node is at that.
func (u *Updater) Restore(current *snapshot.Snapshot) error {
	names := []string{currentPath}
	if birth, _ := handoff.Birth(u.Node); birth == current.Digest() {
		names = append(names, snapshot.Path)
	}
	for _, name := range names {
		s, _, err := u.open(name)
		if err == nil && s.Digest() == current.Digest() {
			continue
		}
		if err == nil { // a snapshot of another config: nobody's to replace
			continue
		}
		if err := u.Node.WriteFile(name, current.Bytes(), 0o600); err != nil {
			return err
		}
		u.Log.Warn("a copy of the node's config was damaged or lost, and is put back", "file", name, "digest", current.Digest(), "problem", err)
	}
	return nil
}
