// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// Sections takes a document apart: the text under each heading, up to the next heading of its level or a higher one, by
// the anchor that leads to it.
func Sections(source []byte) map[string]string {
	type heading struct{ level, from int }
	var headings []heading
	var anchors []string
	seen := &Page{anchors: map[string]bool{}}
	for n := markdown.Parse(text.NewReader(source)).FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && h.Lines().Len() > 0 {
			headings = append(headings, heading{h.Level, h.Lines().At(0).Start})
			anchors = append(anchors, seen.anchor(slug(words(h, source))))
		}
	}
	sections := map[string]string{}
	for i, h := range headings {
		end := len(source)
		for _, next := range headings[i+1:] {
			if next.level <= h.level {
				end = next.from
				break
			}
		}
		sections[anchors[i]] = string(source[h.from:end])
	}
	return sections
}
