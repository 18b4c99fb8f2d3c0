// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/commands/tree"
)

// Each rule is shown something bad, and must find it; and its good neighbour, and must not.

func TestLinks(t *testing.T) {
	other := Read("docs/other.md", []byte("# Other\n\n## What `mcs` does, and why\n\n## Twice\n\n## Twice\n\n<a id=\"here\"></a>\n"))
	exists := func(path string) bool {
		return path == "docs/other.md" || path == "docs/page.md" || path == "README.md" || path == "deploy"
	}
	for text, want := range map[string]string{
		"[a](other.md)":                          "",
		"[a](other.md#what-mcs-does-and-why)":    "",
		"[a](other.md#twice-1)":                  "",
		"[a](other.md#here)":                     "",
		"[a](../README.md), [b](../deploy)":      "",
		"[a](https://example.com/x#y)":           "",
		"# Top\n\n[a](#top)":                     "",
		"`[a](gone.md)`":                         "",
		"one\ntwo [a](gone.md)":                  "docs/page.md:2: link to gone.md: there is no docs/gone.md",
		"| a |\n|---|\n| [a](gone.md) |":         "docs/page.md:3: ",
		"[a](other.md#twyce)":                    "the nearest makes #twice",
		"[a](#nowhere)":                          "no heading of docs/page.md",
		"[a](../README.md#x)":                    "is no page",
		"[a](/docs/other.md)":                    "write it relative",
		"[a](http://example.com)":                "use https",
		"![a drawing](drawing.svg)":              "there is no docs/drawing.svg",
		"[a][ref]\n\n[ref]: gone.md \"a title\"": "there is no docs/gone.md",
	} {
		expect(t, text, Links([]*Page{Read("docs/page.md", []byte(text)), other}, exists), want)
	}
}

func TestSections(t *testing.T) {
	got := Sections([]byte("# A page\n\none\n\n## Its part\n\ntwo\n\n### Deeper\n\nthree\n\n## Its part\n\nfour\n"))
	for anchor, words := range map[string]string{"a-page": "one two three four", "its-part": "two three", "deeper": "three", "its-part-1": "four"} {
		for _, word := range []string{"one", "two", "three", "four"} {
			if strings.Contains(got[anchor], word) != strings.Contains(words, word) {
				t.Errorf("#%s: %q; want %s", anchor, got[anchor], words)
			}
		}
	}
}

func TestIndex(t *testing.T) {
	index := Read("docs/README.md", []byte("[a](a.md#x), [b](b/README.md)\n"))
	page := func(path string) *Page { return Read(path, nil) }
	expect(t, "all are there", Index([]*Page{index, page("docs/a.md"), page("docs/b/README.md"), page("docs/b/c.md"), page("README.md")}, "docs/README.md"), "")
	expect(t, "one is not", Index([]*Page{index, page("docs/a.md"), page("docs/c.md")}, "docs/README.md"), "docs/c.md: docs/README.md does not name it")
}

func TestBlocks(t *testing.T) {
	for text, want := range map[string]string{
		"```sh\nif true; then echo; fi\n```":                    "",
		"one\n\n```sh\nif true\n```":                            "p.md:4: this is no sh",
		"```console\n$ echo 'a\n```":                            "this is no console",
		"```console\n$ echo \\\n   more\nwhat it ' prints\n```": "",
		"```json\n{\"a\": 1}\n```":                              "",
		"```json\n{\"a\": …}\n```":                              "this is no json",
		"```yaml\na: 1\n---\nb: [2]\n```":                       "",
		"```yaml\na: [\n```":                                    "this is no yaml",
		"```yaml\na: 1\na: 2\n```":                              "this is no yaml",
		"```go\nx, err := f()\n```":                             "",
		"```go\nimport \"fmt\"\n```":                            "",
		"```go\nx := := 1\n```":                                 "this is no go",
		"```brainfuck\n+\n```":                                  "nothing here can check",
		"```\nanything ' goes\n```":                             "",
	} {
		expect(t, text, Blocks([]*Page{Read("p.md", []byte(text))}), want)
	}
}

// programs are those of the tests below: one command with a choice, a switch and a value.
var programs = []*tree.Command{{Name: "mcs", Commands: []*tree.Command{
	{Name: "serve", Runs: true, Flags: []tree.Flag{
		{Name: "listen", Short: "l", Kind: "string"},
		{Name: "dev-tls", Alone: true},
		{Name: "gate", Kind: "string", Values: []string{"enforce", "log"}},
	}},
}}}

func TestCommandLines(t *testing.T) {
	for text, want := range map[string]string{
		"`mcs serve --listen :1`": "",
		"`mcs serve --lisen :1`":  "p.md:1: mcs serve has no flag --lisen; the nearest is --listen",
		"`mcs sevre`":             "mcs has no command sevre; the nearest is serve",
		"`mcs serve --gate …`, `mcs …`, `mcs serve --gate WORD`": "",
		"`mcs serve --gate maybe`":                               "mcs serve --gate maybe: use one of enforce, log",
		"`mcs serve --gate=log`, `mcs/serve`, `mcs's`":           "",
		"`--listen`, `--gate log`, `--dev-tls=false`":            "",
		"`--lisen`": "no program of ours has --lisen",
		"one\n\n```sh\nbin/mcs serve --dev-tls --bad &\n```":          "p.md:4: mcs serve has no flag --bad",
		"```sh\nfoo | sudo /usr/bin/mcs serve -l :1 \\\n  --bad\n```": "no flag --bad",
		"```sh\nx=$(mcs serve --bad)\n```":                            "no flag --bad",
		"```sh\nmcs serve --listen --bad\n```":                        "", // a value, as the program takes it
		"```console\n$ mcs serve --bad\nmcs serve --worse\n```":       "no flag --bad",
		"    $ mcs serve --bad\n":                                     "no flag --bad",
		"    mcs serve --bad   # why\n":                               "no flag --bad",
		"```sh\nothers --bad\n```":                                    "",
		"```sh\nmcs serve -- --bad\n```":                              "",
	} {
		expect(t, text, CommandLines([]*Page{Read("p.md", []byte(text))}, programs), want)
	}
}

func TestMetrics(t *testing.T) {
	known := map[string]bool{"mcsnap_a_total": true, "mcsnap_b_seconds": true}
	for text, want := range map[string]string{
		"`mcsnap_a_total{x=\"y\"}`": "",
		"`mcsnap_a`":                "p.md:1: no program shows the metric mcsnap_a; the nearest is mcsnap_a_total",
		"one\n\n```promql\nup\nrate(mcsnap_b_seconds_bucket[5m])\n```": "",
		"one\n\n```promql\nup\nrate(mcsnap_c_seconds_bucket[5m])\n```": "p.md:5: no program shows the metric mcsnap_c",
		"`/run/mcsnap`, `mcsnap-agent`":                                "",
	} {
		expect(t, text, Metrics([]*Page{Read("p.md", []byte(text))}, known), want)
	}
}

func TestNames(t *testing.T) {
	for text, c := range map[string]struct {
		rule func([]*Page, map[string]bool) []string
		want string
	}{
		"`TestAll`, `BenchmarkAny`":  {Tests, "p.md:1: there is no BenchmarkAny; the nearest is"},
		"TestOther, and `Testing`":   {Tests, ""},
		"`MCS_A`":                    {Variables, ""},
		"```sh\nexport MCS_B=1\n```": {Variables, "p.md:2: mcs reads no variable MCS_B; the nearest is MCS_A"},
	} {
		known := map[string]bool{"TestAll": true, "MCS_A": true}
		expect(t, text, c.rule([]*Page{Read("p.md", []byte(text))}, known), c.want)
	}
}

func TestExamples(t *testing.T) {
	help := func(example string) []*tree.Command {
		return []*tree.Command{{Name: "mcs", Example: example, Commands: programs[0].Commands}}
	}
	expect(t, "good", Examples(help("  # try it\n  mcs serve --dev-tls \\\n    --listen :1")), "")
	expect(t, "bad", Examples(help("  mcs serve --bad")), "mcs --help: mcs serve has no flag --bad")
	expect(t, "no shell", Examples(help("  mcs serve '")), "the examples are no shell")
}

// expect wants exactly one fault that holds the text, or none when it is empty.
func expect(t *testing.T, given string, faults []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(faults) > 0:
		t.Errorf("%s: found %q in good input", given, faults)
	case want != "" && (len(faults) != 1 || !strings.Contains(faults[0], want)):
		t.Errorf("%s: found %q; want one fault that says %q", given, faults, want)
	}
}
