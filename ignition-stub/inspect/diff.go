// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"slices"
	"strings"
)

// Outcome is what comparing two documents finds in all.
type Outcome string

// The outcomes.
const (
	Same      Outcome = "the same"
	LooksOnly Outcome = "the same but for order or encoding" // a node cannot tell them apart
	Different Outcome = "different"
)

// Difference is one line of a comparison.
type Difference struct {
	What  string `json:"what"` // kind and name of the entry
	Text  string `json:"text"`
	Looks bool   `json:"looksOnly"` // of order or encoding alone
}

// Diff compares two documents by what they ask of a node. Order counts where it has a meaning: that of kernel arguments
// does, that of files, units and users does not.
func Diff(a, b *Document) (Outcome, []Difference) {
	var differences []Difference
	tell := func(looks bool, e *Entry, format string, args ...any) {
		what := strings.TrimSpace(e.Kind + " " + e.Name)
		differences = append(differences, Difference{what, fmt.Sprintf(format, args...), looks})
	}
	left, right := byKey(a), byKey(b)
	for _, key := range keys(a) {
		if other, ok := right[key]; ok {
			for _, f := range compare(left[key], other) {
				tell(f.Looks, left[key], "%s", f.Text)
			}
		} else {
			tell(false, left[key], "only in the first")
		}
	}
	for _, key := range keys(b) {
		if _, ok := left[key]; !ok {
			tell(false, right[key], "only in the second")
		}
	}
	if a.Version != b.Version && a.Kind == b.Kind {
		tell(false, &Entry{Kind: "ignition.version"}, "%s, and %s", orNothing(a.Version), orNothing(b.Version))
	}
	if len(differences) == 0 {
		if moved := moved(keys(a), keys(b)); moved != "" {
			differences = append(differences, Difference{moved, "in another order", true})
		}
	}
	switch {
	case slices.ContainsFunc(differences, func(d Difference) bool { return !d.Looks }):
		return Different, differences
	case len(differences) > 0:
		return LooksOnly, differences
	}
	return Same, nil
}

// compare finds what differs between two entries of one name.
func compare(a, b *Entry) (differences []Difference) {
	find := func(e *Entry, name string) *Field {
		for _, f := range e.Fields {
			if f.Name == name {
				return f
			}
		}
		return nil
	}
	tell := func(f *Field, text string) {
		name := f.Name
		if name != "" {
			name += ": "
		}
		differences = append(differences, Difference{Text: name + text, Looks: f.cosmetic})
	}
	for _, f := range a.Fields {
		switch other := find(b, f.Name); {
		case other == nil:
			tell(f, f.Shown+", and not set in the second")
		case f.value != other.value && f.Shown == other.Shown:
			tell(f, "another value ("+f.Shown+")")
		case f.value != other.value:
			tell(f, f.Shown+", and "+other.Shown)
		}
	}
	for _, f := range b.Fields {
		if find(a, f.Name) == nil {
			tell(f, f.Shown+", and not set in the first")
		}
	}
	return differences
}

// keys name the entries in order. An entry that comes twice has its number in the name: of two files with one path the
// order has a meaning.
func keys(d *Document) (keys []string) {
	count := map[string]int{}
	for _, e := range d.Entries {
		key := e.Kind + "\x00" + e.Name
		count[key]++
		keys = append(keys, fmt.Sprintf("%s\x00%d", key, count[key]))
	}
	return keys
}

func byKey(d *Document) map[string]*Entry {
	entries := map[string]*Entry{}
	for i, key := range keys(d) {
		entries[key] = d.Entries[i]
	}
	return entries
}

// moved names the kinds whose order differs between two lists of the same keys.
func moved(a, b []string) string {
	var kinds []string
	for i, key := range a {
		if kind, _, _ := strings.Cut(key, "\x00"); b[i] != key && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, ", ")
}

func orNothing(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
