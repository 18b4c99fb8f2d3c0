// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func sample() *Report {
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	after := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	s := &Story{Title: "One <node>, two generations"}
	s.Begin(Span{Lane: "n1", Kind: Initramfs, Label: "Ignition", Generation: 1, From: after(1), To: after(1.5)})
	s.Begin(Span{Lane: "cluster", Kind: Generation, Label: "generation 1", Generation: 1, From: begin, To: after(3)})
	s.Begin(Span{Lane: "cluster", Kind: Generation, Label: "generation 2", Generation: 2, From: after(2)})
	s.Begin(Span{Lane: "n1", Kind: Booting, Label: "boot", Generation: 1, From: after(4), To: after(6)})
	s.Mark(Mark{Lane: "n1", Label: "handed over", At: after(5)})
	s.Mark(Mark{Lane: "n1", Label: "a bit flips", At: after(4.9), Bad: true})
	s.ended = after(8)
	return &Report{Versions: [][2]string{{"Ignition", "v2"}}, Stories: []*Story{s}}
}

func TestMarkdown(t *testing.T) {
	got := string(sample().Markdown())
	want := `## One <node>, two generations

| at | who | what |
|---:|---|---|
| 0.0 s | cluster | generation 1 is rendered |
| 1.0 s | n1 | Ignition begins |
| 1.5 s | n1 | Ignition is done |
| 2.0 s | cluster | generation 2 is rendered |
| 3.0 s | cluster | generation 1 is deleted |
| 4.0 s | n1 | boot begins |
| 4.9 s | n1 | a bit flips |
| 5.0 s | n1 | handed over |
| 6.0 s | n1 | boot is over |
`
	if !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant it to hold\n%s", got, want)
	}
}

// The picture is well-formed, begins with the cluster's lane, and no label lies on another.
func TestPicture(t *testing.T) {
	svg := sample().Stories[0].timeline().svg()
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	if cluster, machine := strings.Index(svg, ">cluster<"), strings.Index(svg, ">n1<"); cluster < 0 || machine < cluster {
		t.Errorf("the cluster's lane is not the first:\n%s", svg)
	}
	if !strings.Contains(svg, ">2 s<") {
		t.Errorf("the axis does not count seconds:\n%s", svg)
	}
	if !strings.Contains(string(sample().HTML()), "One &lt;node&gt;") {
		t.Error("a title is not escaped")
	}
}
