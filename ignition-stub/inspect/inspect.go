// SPDX-License-Identifier: Apache-2.0

// Package inspect shows what is in a config, and what differs between two: Ignition configs, snapshots and
// MachineConfigs alike. Contents of files, passwords, keys and headers are never shown; they are told by size and, where
// that gives nothing away, by digest. It fetches nothing and judges nothing but the snapshot's digest.
package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcsnap/mcsnap/snapshot"
)

// The kinds of documents.
const (
	Ignition      = "Ignition config"
	Snapshot      = "snapshot"
	MachineConfig = "MachineConfig"
)

// Document is a config taken apart.
type Document struct {
	Kind    string   `json:"kind"`
	Version string   `json:"version,omitempty"` // of the Ignition spec
	Names   *Names   `json:"snapshot,omitempty"`
	Entries []*Entry `json:"entries"` // in the document's order
}

// Names are what a snapshot says it is.
type Names struct {
	Pool    string `json:"pool,omitempty"`
	Name    string `json:"name,omitempty"`
	Digest  string `json:"digest,omitempty"`
	Verdict string `json:"verdict"` // "verifies", or why not
}

// Entry is one thing of a document: a file, a unit, a user.
type Entry struct {
	Kind   string   `json:"kind"` // "file", "unit", …
	Name   string   `json:"name"` // its path or name; "" for what there is once
	Fields []*Field `json:"fields,omitempty"`
}

// Field is one property of an entry.
type Field struct {
	Name  string `json:"name"`
	Shown string `json:"value"`

	value    string // what is compared
	cosmetic bool   // how something is written down, not what it is
}

// InputError says that a document is none of those that are known here.
type InputError struct{ Problem string }

func (e *InputError) Error() string { return e.Problem }

// Read takes a document apart. The error is an [InputError].
func Read(text []byte) (*Document, error) {
	object, err := decode(text)
	if err != nil {
		return nil, &InputError{fmt.Sprintf("not a JSON object: %v; want an Ignition config, a snapshot or a MachineConfig", err)}
	}
	switch kind, _ := object["kind"].(string); {
	case kind == snapshot.Kind:
		return readSnapshot(text, object)
	case kind == MachineConfig:
		d := &Document{Kind: MachineConfig}
		return d, d.readMachineConfig(object)
	}
	if _, ok := object["ignition"].(map[string]any); !ok {
		return nil, &InputError{"neither an Ignition config nor a snapshot nor a MachineConfig"}
	}
	d := &Document{Kind: Ignition}
	d.readIgnition(object)
	if s, err := snapshot.Extract(text); err == nil {
		d.Names = &Names{s.Pool(), s.Name(), string(s.Digest()), "verifies"}
	} else if _, none := errors.AsType[*snapshot.NoSnapshotError](err); !none {
		d.Names = &Names{Verdict: err.Error()}
	}
	return d, nil
}

func readSnapshot(text []byte, object map[string]any) (*Document, error) {
	d := &Document{Kind: Snapshot}
	if s, err := snapshot.Open(text); err == nil {
		d.Names = &Names{s.Pool(), s.Name(), string(s.Digest()), "verifies"}
	} else {
		d.Names = &Names{Verdict: err.Error()}
	}
	config, _ := object["machineConfig"].(map[string]any)
	return d, d.readMachineConfig(config)
}

func (d *Document) readMachineConfig(object map[string]any) error {
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return &InputError{"the MachineConfig has no spec"}
	}
	for _, key := range sorted(spec) {
		if key == "config" {
			continue
		}
		d.addWhole("spec."+key, spec[key])
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		for _, key := range []string{"name", "annotations", "labels"} {
			if value, ok := metadata[key]; ok {
				d.addWhole("metadata."+key, value)
			}
		}
	}
	if config, ok := spec["config"].(map[string]any); ok {
		d.readIgnition(config)
	}
	return nil
}

func decode(text []byte) (object map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	if object == nil {
		return nil, errors.New("it is null")
	}
	return object, nil
}
