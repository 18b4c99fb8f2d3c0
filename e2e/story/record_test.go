// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package story

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/mcsnap/mcsnap/e2e/lab"
	"github.com/mcsnap/mcsnap/e2e/node"
	"github.com/mcsnap/mcsnap/e2e/report"
	"github.com/mcsnap/mcsnap/e2e/server"
	"github.com/mcsnap/mcsnap/e2e/witness"
)

var stories struct {
	sync.Mutex
	all []*report.Story
}

// record writes down what happens in a story, for the report.
type record struct {
	story  *report.Story
	newest int            // generation that is served
	born   map[string]int // a machine's generation
	gone   map[int]func() // ends a generation's span
	away   func()         // ends the server's span
}

func newRecord(title string) *record {
	r := &record{story: &report.Story{Title: title}, born: map[string]int{}, gone: map[int]func(){}}
	stories.Lock()
	defer stories.Unlock()
	stories.all = append(stories.all, r.story)
	return r
}

func (r *record) rendered(n int) {
	r.newest = n
	r.gone[n] = r.story.Begin(report.Span{Lane: "cluster", Kind: report.Generation, Label: fmt.Sprintf("generation %d", n), Generation: n})
}

func (r *record) deleted(n int) { r.gone[n]() }

func (r *record) served() {
	r.away = r.story.Begin(report.Span{Lane: "server", Kind: report.Server, Label: "the server"})
}

func (r *record) fault(n *node.Node, what string) {
	r.story.Mark(report.Mark{Lane: n.Name, Label: what, Bad: true})
}

// ignites notes the initramfs, and when Ignition had fetched and written everything.
func (r *record) ignites(n *node.Node) (done func(lab.Booted)) {
	r.born[n.Name] = r.newest
	end := r.story.Begin(report.Span{Lane: n.Name, Kind: report.Initramfs, Label: "Ignition", Generation: r.newest})
	return func(booted lab.Booted) {
		end()
		for stage, label := range map[string]string{"fetch": "fetched", "files": "written"} {
			if at, ok := booted.Ended[stage]; ok {
				r.story.Mark(report.Mark{Lane: n.Name, Label: label, At: at})
			}
		}
	}
}

// startsUp notes a boot, and when the agent had handed over in it.
func (r *record) startsUp(n *node.Node) (done func()) {
	current := n.Path(witness.CurrentConfig)
	_, before := os.Stat(current)
	end := r.story.Begin(report.Span{Lane: n.Name, Kind: report.Booting, Label: "boot", Generation: r.born[n.Name]})
	return func() {
		end()
		if info, err := os.Stat(current); err == nil && before != nil {
			r.story.Mark(report.Mark{Lane: n.Name, Label: "handed over", At: info.ModTime()})
		}
	}
}

// writeReport leaves the page and the table in a folder; none is named when nobody wants them.
func writeReport(folder string) error {
	if folder == "" {
		return nil
	}
	versions, err := versions()
	if err != nil {
		return err
	}
	r := &report.Report{Versions: versions, Stories: stories.all}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "report.html"), r.HTML(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "report.md"), r.Markdown(), 0o644)
}

func versions() (all [][2]string, err error) {
	bin, err := server.Bin()
	if err != nil {
		return nil, err
	}
	ignition, err := lab.Find("ignition", "ignition")
	if err != nil {
		return nil, err
	}
	for _, part := range []struct{ name, program, flag string }{
		{"mcs", filepath.Join(bin, "mcs"), "--version"},
		{"mcsnap-agent", filepath.Join(bin, "mcsnap-agent"), "--version"},
		{"Ignition", ignition, "--version"},
		{"systemd", "systemd-nspawn", "--version"},
		{"Linux", "uname", "-r"},
	} {
		out, err := exec.Command(part.program, part.flag).Output()
		if err != nil {
			return nil, fmt.Errorf("the version of %s: %w", part.name, err)
		}
		line, _, _ := strings.Cut(string(out), "\n")
		all = append(all, [2]string{part.name, line})
	}
	return append(all, [2]string{"Go", runtime.Version()}), nil
}
