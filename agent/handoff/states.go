// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
)

// state is one step of a first boot. It returns the next one, or nil at the end. Each may be cut at any point and run
// again on the next boot, from the first state: nothing but the node's files is remembered.
type state func(context.Context, *boot) (state, error)

// checkJoined looks for the signs of a node that is in its cluster already. It knows them without the snapshot, which
// such a node may have lost long ago.
//
// Transitions:
//
//	--> end: the kubelet has a client certificate, or the annotations file was renamed, or the daemon moved on
//	--> prepare: none of these
//	--> failed: a file cannot be read
func checkJoined(_ context.Context, b *boot) (state, error) {
	for _, sign := range []struct{ file, meaning string }{
		{KubeletCertPath, "the kubelet has its client certificate"},
		{BootstrappedPath, "the daemon has ended its bootstrap"},
	} {
		there, err := isSign(b.Node, sign.file)
		if err != nil {
			return nil, machineError(err)
		}
		if there {
			b.end(Joined, fmt.Sprintf("%s (%s): nothing to do", sign.meaning, sign.file))
			return nil, nil
		}
	}
	var err error
	if b.born, err = readAnnotations(b.Node); err != nil {
		return nil, err
	}
	if b.born != nil && b.born.Config != "" {
		if moved, err := b.movedOn(b.born.Config); moved || err != nil {
			return nil, err
		}
	}
	return prepare, nil
}

// isSign tells whether a sign of a joined node is there: a file or, as the kubelet makes it, a link. A folder is none.
func isSign(node *root.Root, name string) (bool, error) {
	info, err := node.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && !info.IsDir(), err
}

// prepare makes the agent's own folder, sees to it that no other agent works on the node, and removes what one that was
// killed had not finished.
//
// Transitions:
//
//	--> find: the node is this process's
//	--> failed: another process has it, or the folders cannot be written
func prepare(_ context.Context, b *boot) (state, error) {
	if err := b.Node.MkdirAll(path.Dir(RecordPath), 0o700); err != nil {
		return nil, machineError(err)
	}
	unlock, err := b.Node.Lock(path.Dir(RecordPath))
	if err != nil {
		return nil, machineError(err)
	}
	b.unlock = unlock
	for _, file := range []string{snapshot.Path, CurrentPath, RecordPath} {
		if err := b.Node.Sweep(path.Dir(file)); err != nil {
			return nil, machineError(err)
		}
	}
	return find, nil
}

// find reads the snapshot's file.
//
// Transitions:
//
//	--> verify: there is one
//	--> refetch: there is none, or something that is no file, or it is too large
//	--> failed: it cannot be read
func find(_ context.Context, b *boot) (state, error) {
	b.Tell.Status("reading " + snapshot.Path)
	var err error
	b.raw, err = b.Node.ReadFile(snapshot.Path, snapshot.MaxSealed)
	if errors.Is(err, fs.ErrPermission) {
		return nil, machineError(err)
	}
	if err != nil {
		b.problem = err
		return refetch, nil
	}
	return verify, nil
}

// verify opens the snapshot. It needs no network.
//
// Transitions:
//
//	--> checkMixed: it is what was sealed
//	--> refetch: it is not
func verify(_ context.Context, b *boot) (state, error) {
	s, err := snapshot.Open(b.raw)
	if err != nil {
		b.problem = fmt.Errorf("%s: %w", snapshot.Path, err)
		return refetch, nil
	}
	b.snap, b.record.Source = s, Embedded
	return checkMixed, nil
}

// refetch gets the snapshot back from a server, by the digest that the annotations file names and never by pool: a pool
// may be at another config by now.
//
// Transitions:
//
//	--> repair: a server had it
//	--> failed: no digest, no server, or no answer
func refetch(ctx context.Context, b *boot) (state, error) {
	damaged := &DamagedError{Problem: b.problem}
	b.Log.Warn("the snapshot is damaged or missing", "file", snapshot.Path, "problem", b.problem)
	if b.born == nil || b.born.Digest == "" {
		damaged.Refetch = errors.New("nothing names the digest to ask for; provision the node again")
		return nil, damaged
	}
	damaged.Want = b.born.Digest
	config, err := ReadConfig(b.Node)
	if err != nil {
		return nil, err
	}
	if config == nil || b.Fetch == nil {
		damaged.Refetch = fmt.Errorf("%s: missing, so no server is known; write it, or provision the node again", ConfigPath)
		return nil, damaged
	}
	token, err := ReadToken(b.Node)
	if err != nil {
		return nil, err
	}
	b.Tell.Status(fmt.Sprintf("%s is damaged or missing: fetching %s from %s", snapshot.Path, b.born.Digest, strings.Join(config.Servers, ", ")))
	damaged.Network = true
	s, attempts, err := b.Fetch(ctx, config, token, b.born.Digest)
	b.outcome.Attempts = attempts
	if err != nil {
		damaged.Refetch = err
		return nil, damaged
	}
	if s.Digest() != b.born.Digest {
		damaged.Refetch = &snapshot.DigestError{Want: string(b.born.Digest), Got: s.Digest()}
		return nil, damaged
	}
	b.snap = s.WithOverlays(b.overlaysStillTrue())
	b.record.Source, b.record.Attempts = Fetched, attempts
	return repair, nil
}

// repair puts the snapshot back where Ignition had written it, for the daemon and for the next boot. Before that it
// writes down where it comes from: a boot that is cut after the repair finds a snapshot that verifies.
//
// Transitions:
//
//	--> checkMixed: it is on stable storage
//	--> failed: it cannot be written
func repair(_ context.Context, b *boot) (state, error) {
	if err := b.writeRecord(Pending); err != nil {
		return nil, err
	}
	if err := b.Node.WriteFile(snapshot.Path, b.snap.Bytes(), 0o600); err != nil {
		return nil, machineError(err)
	}
	b.Log.Info("the snapshot was fetched again and put back", "file", snapshot.Path, "digest", b.snap.Digest(), "attempts", b.record.Attempts)
	return checkMixed, nil
}

// checkMixed refuses a node whose snapshot and annotations come from two different runs of Ignition.
//
// Transitions:
//
//	--> handOver: they agree, or there is no annotations file to disagree
//	--> end: without annotations, the daemon's current config names another: it moved on
//	--> failed: they disagree
func checkMixed(_ context.Context, b *boot) (state, error) {
	b.outcome.Name, b.outcome.Digest = b.snap.Name(), b.snap.Digest()
	b.outcome.Overlays = len(b.snap.Overlays())
	if b.born == nil {
		if moved, err := b.movedOn(b.snap.Name()); moved || err != nil {
			return nil, err
		}
		return handOver, nil
	}
	if b.born.Config != "" && b.born.Config != b.snap.Name() || b.born.Digest != "" && b.born.Digest != b.snap.Digest() {
		return nil, &MixedError{b.born.Config, b.snap.Name(), b.born.Digest, b.snap.Digest()}
	}
	return handOver, nil
}

// handOver writes the whole rendered config, with its pool, where the daemon looks for its current one. What upstream's
// first boot left there, the same name with everything in it emptied, is replaced (field case 10).
//
// Transitions:
//
//	--> finish: it is on stable storage
//	--> failed: it cannot be written
func handOver(_ context.Context, b *boot) (state, error) {
	b.Tell.Status("handing over " + b.snap.Name())
	exported, err := b.snap.Export("")
	if err != nil {
		return nil, &InputError{snapshot.Path, err.Error(), "provision the node again"}
	}
	same, err := b.holds(CurrentPath, exported)
	if err != nil {
		return nil, err
	}
	if same {
		if err := b.Node.Confirm(CurrentPath); err != nil {
			return nil, machineError(err)
		}
		b.end(Unchanged, "handed over before: "+b.snap.Name())
		return finish, nil
	}
	if err := b.Node.MkdirAll(path.Dir(CurrentPath), 0o755); err != nil {
		return nil, machineError(err)
	}
	if err := b.Node.WriteFile(CurrentPath, exported, 0o600); err != nil {
		return nil, machineError(err)
	}
	b.end(HandedOver, fmt.Sprintf("handed over %s, verified, %s", b.snap.Name(), countOverlays(b.outcome.Overlays)))
	return finish, nil
}

// finish writes the record, after which the hand-over may be told.
//
// Transitions:
//
//	--> end: it is on stable storage
//	--> failed: it cannot be written
func finish(_ context.Context, b *boot) (state, error) {
	if err := b.writeRecord(Done); err != nil {
		return nil, err
	}
	b.outcome.Source = b.record.Source
	return nil, nil
}

// movedOn tells whether the daemon's current config names another config than the one the node was born with, and ends
// the run if so.
func (b *boot) movedOn(born string) (bool, error) {
	name, err := b.currentName()
	if err != nil || name == "" || name == born {
		return false, err
	}
	b.end(Joined, fmt.Sprintf("the daemon has moved on from %s to %s (%s): nothing to do", born, name, CurrentPath))
	return true, nil
}

// currentName is the name in the daemon's current config, "" when there is none or it cannot be parsed: a file that was
// cut short says nothing about where the daemon is.
func (b *boot) currentName() (string, error) {
	text, err := b.Node.ReadFile(CurrentPath, maxCurrent)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", machineError(err)
	}
	return configName(text), nil
}

func configName(machineConfig []byte) string {
	var object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if json.Unmarshal(machineConfig, &object) != nil {
		return ""
	}
	return object.Metadata.Name
}

// holds tells whether a file has exactly this content and is for root alone.
func (b *boot) holds(name string, content []byte) (bool, error) {
	info, err := b.Node.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, machineError(err)
	}
	if info.Mode() != 0o600 || info.Size() != int64(len(content)) {
		return false, nil
	}
	found, err := b.Node.ReadFile(name, maxCurrent)
	return bytes.Equal(found, content), machineError(err)
}

func countOverlays(n int) string {
	if n == 1 {
		return "1 overlay"
	}
	return fmt.Sprintf("%d overlays", n)
}
