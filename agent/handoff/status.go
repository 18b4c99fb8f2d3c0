// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
)

// Status is what a node's files say about its birth. It holds no contents of any file.
type Status struct {
	Joined      string         `json:"joined,omitempty"` // the sign by which the node has joined, "" if it has not
	Annotations *Annotations   `json:"annotations,omitempty"`
	Snapshot    SnapshotStatus `json:"snapshot"`
	Current     CurrentStatus  `json:"current"`
	Record      *Record        `json:"record,omitempty"`
	Problems    []string       `json:"problems,omitempty"`
}

// SnapshotStatus is about /etc/mcd-snapshot.json.
type SnapshotStatus struct {
	Verified bool            `json:"verified"`
	Problem  string          `json:"problem,omitempty"`
	Name     string          `json:"name,omitempty"`
	Pool     string          `json:"pool,omitempty"`
	Digest   snapshot.Digest `json:"digest,omitempty"`
	Overlays []string        `json:"overlays,omitempty"` // paths

	// Opened is the snapshot itself, nil when it does not verify.
	Opened *snapshot.Snapshot `json:"-"`
}

// Content tells how a daemon's current config relates to the snapshot.
type Content string

const (
	Absent      Content = "absent"       // there is no such file
	Whole       Content = "whole"        // exactly what is handed over
	SameSpec    Content = "same-spec"    // the same config in another form, as a daemon writes it
	Emptied     Content = "emptied"      // the snapshot's name without its files and units: upstream's first boot
	OtherSpec   Content = "other-spec"   // the snapshot's name, another spec
	OtherConfig Content = "other-config" // another name: the daemon moved on
	Unreadable  Content = "unreadable"   // not a MachineConfig
	Unknown     Content = "unknown"      // a MachineConfig, and no snapshot to compare it with
)

// CurrentStatus is about the daemon's current config.
type CurrentStatus struct {
	Content Content `json:"content"`
	Name    string  `json:"name,omitempty"`
}

// Inspect reads a node's files and changes nothing. What cannot be read is in Problems.
func Inspect(node *root.Root) Status {
	var status Status
	note := func(err error) {
		if err != nil {
			status.Problems = append(status.Problems, err.Error())
		}
	}
	for _, file := range []string{KubeletCertPath, BootstrappedPath} {
		there, err := isSign(node, file)
		note(err)
		if there && status.Joined == "" {
			status.Joined = file
		}
	}
	var err error
	status.Annotations, err = readAnnotations(node)
	note(err)
	status.Record, err = ReadRecord(node)
	note(err)

	sealed, err := node.ReadFile(snapshot.Path, snapshot.MaxSealed)
	if err == nil {
		if status.Snapshot.Opened, err = snapshot.Open(sealed); err != nil {
			err = fmt.Errorf("%s: %w", snapshot.Path, err)
		}
	}
	if s := status.Snapshot.Opened; s != nil {
		status.Snapshot.Verified = true
		status.Snapshot.Name, status.Snapshot.Pool, status.Snapshot.Digest = s.Name(), s.Pool(), s.Digest()
		for _, overlay := range s.Overlays() {
			status.Snapshot.Overlays = append(status.Snapshot.Overlays, overlay.Path)
		}
		if a := status.Annotations; a != nil && (a.Config != "" && a.Config != s.Name() || a.Digest != "" && a.Digest != s.Digest()) {
			note(&MixedError{a.Config, s.Name(), a.Digest, s.Digest()})
		}
	} else {
		status.Snapshot.Problem = err.Error()
	}

	current, err := node.ReadFile(CurrentPath, maxCurrent)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		status.Current.Content = Absent
	case err != nil:
		note(err)
		status.Current.Content = Unreadable
	default:
		status.Current = compareCurrent(current, status.Snapshot.Opened)
	}
	if status.Joined == "" && status.Current.Content == OtherConfig {
		status.Joined = CurrentPath
	}
	return status
}

func compareCurrent(current []byte, s *snapshot.Snapshot) CurrentStatus {
	name := configName(current)
	compared := func(content Content) CurrentStatus { return CurrentStatus{content, name} }
	switch {
	case name == "":
		return compared(Unreadable)
	case s == nil:
		return compared(Unknown)
	case name != s.Name():
		return compared(OtherConfig)
	}
	if exported, err := s.Export(""); err == nil && bytes.Equal(current, exported) {
		return compared(Whole)
	}
	theirs, err := snapshot.Seal(current, s.Pool())
	switch {
	case err != nil:
		return compared(Unreadable)
	case snapshot.SameConfig(s, theirs):
		return compared(SameSpec)
	case Contents(theirs).Empty() && !Contents(s).Empty():
		return compared(Emptied)
	}
	return compared(OtherSpec)
}
