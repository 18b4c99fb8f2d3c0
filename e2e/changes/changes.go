// SPDX-License-Identifier: Apache-2.0

// Package changes makes CHANGELOG.md of the notes under docs/changes: one file per change, so that two changes never
// meet in one line. It judges a note's form. Whether a change deserves a note is for people.
package changes

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-semver/semver"
)

//go:generate go run ./write ../../CHANGELOG.md

// Unreleased is the folder of the notes that no release has yet.
const Unreleased = "unreleased"

// kinds are in the order in which somebody who updates wants to read them.
var kinds = []string{"Security", "Removed", "Changed", "Added", "Fixed"}

const head = `# Changelog

All notable changes, newest first. Versions follow semantic versioning; the snapshot format has a version of its own
(` + "`apiVersion`" + `). Made from the notes in [docs/changes](docs/changes/README.md) by ` + "`go generate ./e2e/changes`" + `.
`

// release is a folder of notes. A folder without a version is the unreleased one.
type release struct {
	folder, date string
	version      *semver.Version
}

// note is one change.
type note struct{ kind, title, text string }

// Render makes the changelog of a folder that holds a folder of notes for each release, named VERSION_DATE.
func Render(notes fs.FS) ([]byte, error) {
	releases, err := readReleases(notes)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	out.WriteString(head)
	for _, r := range releases {
		found, err := readNotes(notes, r.folder)
		if err != nil {
			return nil, err
		}
		if r.version == nil {
			out.WriteString("\n## Unreleased\n")
		} else {
			fmt.Fprintf(&out, "\n## %s, %s\n", r.version, r.date)
		}
		for _, kind := range kinds {
			writeKind(&out, kind, found)
		}
	}
	return []byte(out.String()), nil
}

func writeKind(out *strings.Builder, kind string, notes []note) {
	begun := false
	for _, n := range notes {
		if n.kind != kind {
			continue
		}
		if !begun {
			fmt.Fprintf(out, "\n### %s\n\n", kind)
			begun = true
		}
		fmt.Fprintf(out, "* **%s**\n", n.title)
		for line := range strings.Lines(n.text) {
			if strings.TrimSpace(line) != "" {
				out.WriteString("  ")
			}
			out.WriteString(line)
		}
	}
}

var released = regexp.MustCompile(`^(\d+\.\d+\.\d+)_(\d{4}-\d{2}-\d{2})$`)

func readReleases(notes fs.FS) (releases []release, err error) {
	entries, err := fs.ReadDir(notes, ".")
	if err != nil {
		return nil, fmt.Errorf("read the notes' folders: %w", err)
	}
	for _, entry := range entries {
		m := released.FindStringSubmatch(entry.Name())
		switch {
		case entry.Name() == "README.md":
		case entry.Name() == Unreleased && entry.IsDir():
			releases = append(releases, release{folder: Unreleased})
		case m == nil || !entry.IsDir():
			return nil, fmt.Errorf("docs/changes/%s: is no folder of a release; notes go into %s/, a release's folder is called VERSION_DATE, such as 1.2.0_2027-01-31", entry.Name(), Unreleased)
		default:
			version, versionErr := semver.NewVersion(m[1])
			if _, dateErr := time.Parse(time.DateOnly, m[2]); versionErr != nil || dateErr != nil {
				return nil, fmt.Errorf("docs/changes/%s: %w; call it VERSION_DATE, such as 1.2.0_2027-01-31", entry.Name(), errors.Join(versionErr, dateErr))
			}
			releases = append(releases, release{entry.Name(), m[2], version})
		}
	}
	slices.SortFunc(releases, func(a, b release) int {
		switch {
		case a.version == nil:
			return -1
		case b.version == nil:
			return 1
		}
		return b.version.Compare(*a.version)
	})
	return releases, nil
}

func readNotes(notes fs.FS, folder string) (found []note, err error) {
	entries, err := fs.ReadDir(notes, folder)
	if err != nil {
		return nil, fmt.Errorf("read the notes in %s: %w", folder, err)
	}
	for _, entry := range entries {
		name := path.Join(folder, entry.Name())
		text, err := fs.ReadFile(notes, name)
		if err != nil {
			return nil, fmt.Errorf("read a note: %w", err)
		}
		n, problem := parse(string(text))
		if path.Ext(name) != ".md" {
			problem = "a note's name ends in .md"
		}
		if problem != "" {
			return nil, fmt.Errorf("docs/changes/%s: %s; docs/changes/README.md shows one", name, problem)
		}
		found = append(found, n)
	}
	return found, nil
}

var (
	titled   = regexp.MustCompile(`^# (\w+): (\S.*)$`)
	link     = regexp.MustCompile(`\]\(([^)]*)\)|^ {0,3}\[[^\]]+\]:`)
	headings = regexp.MustCompile(`(?m)^#+ `)
)

// parse reads a note: a heading that names the kind and says the change in one line, and what else the reader needs.
func parse(text string) (n note, problem string) {
	first, rest, _ := strings.Cut(text, "\n")
	m := titled.FindStringSubmatch(first)
	if m == nil {
		return n, fmt.Sprintf("begins with %.60q; begin with `# Kind: what is new, in one line`", first)
	}
	n = note{m[1], m[2], strings.TrimSpace(rest)}
	if n.text != "" {
		n.text = "\n" + n.text + "\n"
	}
	switch {
	case !slices.Contains(kinds, n.kind):
		return n, fmt.Sprintf("the kind is %q; use one of %s", n.kind, strings.Join(kinds, ", "))
	case len(n.title) > 120:
		return n, fmt.Sprintf("the heading has %d bytes; say it in 120, and the rest below", len(n.title))
	case headings.MatchString(n.text):
		return n, "has a second heading; make it a note of its own"
	}
	for _, l := range link.FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(l[1], "https://") {
			return n, fmt.Sprintf("links to %q, which leads elsewhere from CHANGELOG.md; write `docs/page.md` as code", l[1])
		}
	}
	return n, ""
}
