// SPDX-License-Identifier: Apache-2.0

// Package pages judges the repository's documents as far as a machine can: links lead somewhere, blocks of code are of
// the language they claim, and the command lines of our programs that they show exist. Each rule is a function from
// pages to the list of faults. Whether what is written is true in other ways, and whether it is well said, is for people.
package pages

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// Page is one document. Path is relative to the repository's top, with slashes.
type Page struct {
	Path    string
	anchors map[string]bool
	links   []found // their destinations
	spans   []found // of code, within a line
	blocks  []block // of code
}

// found is a piece of a page and the line it stands on.
type found struct {
	line int
	text string
}

// block is a block of code. An indented one and one without a name have no language.
type block struct {
	found
	language string
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()

// Read parses a document in Markdown.
func Read(path string, source []byte) *Page {
	p := &Page{Path: path, anchors: map[string]bool{}}
	at := func(offset int) int { return 1 + bytes.Count(source[:max(0, min(offset, len(source)))], []byte("\n")) }
	_ = ast.Walk(markdown.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			p.anchor(slug(words(n, source)))
		case *ast.Link:
			p.links = append(p.links, found{at(n.Pos()), string(n.Destination)})
		case *ast.Image:
			p.links = append(p.links, found{at(n.Pos()), string(n.Destination)})
		case *ast.RawHTML:
			for _, m := range named.FindAllSubmatch(n.Segments.Value(source), -1) {
				p.anchors[string(m[1])] = true
			}
		case *ast.CodeSpan:
			p.spans = append(p.spans, found{at(n.Pos()), words(n, source)})
			return ast.WalkSkipChildren, nil
		case *ast.FencedCodeBlock:
			p.blocks = append(p.blocks, block{first(n, source, at), string(n.Language(source))})
		case *ast.CodeBlock:
			p.blocks = append(p.blocks, block{first(n, source, at), ""})
		}
		return ast.WalkContinue, nil
	})
	return p
}

var named = regexp.MustCompile(`(?:id|name)="([^"]+)"`)

// anchor notes a heading and returns its anchor; a second one of the same words gets -1, a third -2, as GitHub counts them.
func (p *Page) anchor(name string) string {
	for i, candidate := 0, name; ; i++ {
		if i > 0 {
			candidate = name + "-" + string(rune('0'+i))
		}
		if !p.anchors[candidate] {
			p.anchors[candidate] = true
			return candidate
		}
	}
}

// slug is what GitHub makes of a heading: lower case, letters, digits, hyphens and underscores kept, spaces to hyphens.
func slug(heading string) string {
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

var dropped = regexp.MustCompile(`[^\p{L}\p{N}\p{M} _-]`)

// words is the text of a node without its marks.
func words(n ast.Node, source []byte) string {
	var all strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			all.Write(t.Segment.Value(source))
			if t.SoftLineBreak() {
				all.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return all.String()
}

// first is a block's text and the line that it begins on.
func first(n ast.Node, source []byte, at func(int) int) found {
	lines := n.Lines()
	if lines.Len() == 0 {
		return found{line: at(n.Pos())}
	}
	return found{at(lines.At(0).Start), string(lines.Value(source))}
}
