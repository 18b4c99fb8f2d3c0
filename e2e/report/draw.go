// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"
)

// Measures of the picture, in pixels.
const (
	width    = 1040
	left     = 110 // where time begins
	right    = 30
	rowTall  = 20 // a bar
	rowGap   = 6
	markTall = 15 // a line of labels under a lane's bars
	lanePad  = 14
	letter   = 6.3 // the width of a label's letter
)

var colours = []string{"#8a8f98", "#2f6fb0", "#c2581b", "#3c8d40", "#8250a8", "#a8862a"}

// svg draws a timeline: a lane for each thing, bars for what lasted, points for what happened.
func (t timeline) svg() string {
	var body strings.Builder
	scale := (width - left - right) / math.Max(t.seconds, 0.001)
	x := func(seconds float64) float64 { return left + seconds*scale }
	y := 28.0
	for _, l := range t.lanes {
		top := y
		rows := rowsOf(l.spans, x)
		deepest := 0
		for i, span := range l.spans {
			deepest = max(deepest, rows[i]+1)
			barTop := y + float64(rows[i])*(rowTall+rowGap)
			wide := math.Max(x(span.to)-x(span.from), 2)
			fmt.Fprintf(&body, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="3" fill="%s" fill-opacity="%s"/>`+"\n",
				x(span.from), barTop, wide, rowTall, colours[span.Generation%len(colours)], opacity[span.Kind])
			anchor, at := "start", x(span.from)+5
			fill := "#ffffff"
			if float64(len(span.Label))*letter+8 > wide {
				fill, at = "#24292f", x(span.to)+4 // no room inside
				if at+float64(len(span.Label))*letter > width {
					anchor, at = "end", x(span.from)-4
				}
			}
			fmt.Fprintf(&body, `<text x="%.1f" y="%.1f" fill="%s" text-anchor="%s">%s</text>`+"\n", at, barTop+14, fill, anchor, html.EscapeString(span.Label))
		}
		y += float64(deepest) * (rowTall + rowGap)
		y = drawMarks(&body, l, x, top, y)
		fmt.Fprintf(&body, `<text x="8" y="%.1f" font-weight="bold">%s</text>`+"\n", top+14, html.EscapeString(l.name))
		fmt.Fprintf(&body, `<line x1="0" x2="%d" y1="%.1f" y2="%[2]f" stroke="#d8dee4"/>`+"\n", width, y+lanePad/2)
		y += lanePad
	}
	var axis strings.Builder
	for second := 0.0; second <= t.seconds; second += tick(t.seconds) {
		fmt.Fprintf(&axis, `<line x1="%.1f" x2="%.1[1]f" y1="20" y2="%.1f" stroke="#eaeef2"/><text x="%.1[1]f" y="14" text-anchor="middle" fill="#57606a">%[3]g s</text>`+"\n", x(second), y, second)
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%[1]d" height="%.0[2]f" role="img" aria-label="%s" font-family="system-ui, sans-serif" font-size="12">`+
		"\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n%s%s</svg>\n", width, y+4, html.EscapeString(t.title), axis.String(), body.String())
}

var opacity = map[Kind]string{Generation: "1", Initramfs: "0.65", Booting: "1", Server: "1"}

// drawMarks sets each mark's point on the lane's bars and its label on a line where it overlaps no other, and returns
// the lane's lower edge.
func drawMarks(body *strings.Builder, l lane, x func(float64) float64, top, y float64) float64 {
	var ends []float64 // of the last label on each line
	for _, mark := range l.marks {
		colour := "#24292f"
		if mark.Bad {
			colour = "#b3261e"
		}
		wide := float64(len([]rune(mark.Label)))*letter + 14
		begin, anchor, text := x(mark.at), "start", x(mark.at)+4
		if begin+wide > width { // no room on the right
			begin, anchor, text = begin-wide, "end", begin-4
		}
		line := 0
		for line < len(ends) && ends[line] > begin {
			line++
		}
		if line == len(ends) {
			ends = append(ends, 0)
		}
		ends[line] = begin + wide
		labelTop := y + float64(line)*markTall
		fmt.Fprintf(body, `<line x1="%.1f" x2="%.1[1]f" y1="%.1f" y2="%.1f" stroke="%s" stroke-width="1.5"/>`+"\n", x(mark.at), top, labelTop+10, colour)
		fmt.Fprintf(body, `<text x="%.1f" y="%.1f" fill="%s" text-anchor="%s">%s</text>`+"\n", text, labelTop+10, colour, anchor, html.EscapeString(mark.Label))
	}
	return y + float64(len(ends))*markTall
}

// rowsOf puts spans that overlap in time below each other.
func rowsOf(spans []drawnSpan, x func(float64) float64) []int {
	var free []float64
	rows := make([]int, len(spans))
	for i, span := range spans {
		row := 0
		for row < len(free) && free[row] > x(span.from) {
			row++
		}
		if row == len(free) {
			free = append(free, 0)
		}
		free[row], rows[i] = x(span.to), row
	}
	return rows
}

// tick is a round number of seconds that divides the picture into some ten parts.
func tick(seconds float64) float64 {
	for _, step := range []float64{0.5, 1, 2, 5, 10, 20, 60} {
		if seconds/step <= 12 {
			return step
		}
	}
	return 300
}

// HTML is the report as one page that needs nothing else.
func (r *Report) HTML() []byte {
	var page bytes.Buffer
	page.WriteString("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>mcsnap: what happened to the machines</title>\n" +
		"<style>body{font:15px/1.5 system-ui,sans-serif;max-width:1080px;margin:2rem auto;padding:0 1rem;color:#24292f}svg{max-width:100%;height:auto}" +
		"table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:left}</style>\n<h1>What happened to the machines</h1>\n")
	for _, story := range r.Stories {
		t := story.timeline()
		fmt.Fprintf(&page, "<h2>%s</h2>\n%s", html.EscapeString(t.title), t.svg())
	}
	page.WriteString("<h2>The real parts</h2>\n<table>\n")
	for _, version := range r.Versions {
		fmt.Fprintf(&page, "<tr><td>%s</td><td>%s</td></tr>\n", html.EscapeString(version[0]), html.EscapeString(version[1]))
	}
	page.WriteString("</table>\n</html>\n")
	return page.Bytes()
}

// Markdown is the report as tables: for each machine the moments of its life, in seconds since its story began.
func (r *Report) Markdown() []byte {
	var text bytes.Buffer
	text.WriteString("# What happened to the machines\n")
	for _, story := range r.Stories {
		t := story.timeline()
		fmt.Fprintf(&text, "\n## %s\n\n| at | who | what |\n|---:|---|---|\n", t.title)
		for _, row := range t.rows() {
			fmt.Fprintf(&text, "| %.1f s | %s | %s |\n", row.at, row.lane, row.what)
		}
	}
	text.WriteString("\n## The real parts\n\n| part | version |\n|---|---|\n")
	for _, version := range r.Versions {
		fmt.Fprintf(&text, "| %s | %s |\n", version[0], version[1])
	}
	return text.Bytes()
}
