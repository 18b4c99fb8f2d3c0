// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	metricName = regexp.MustCompile(`\bmcsnap_[a-z0-9_]+\b`)
	made       = regexp.MustCompile(`_(bucket|sum|count)$`) // what a histogram makes of its name
)

// Metrics returns the metrics named in code on the pages that no program shows.
func Metrics(all []*Page, known map[string]bool) (faults []string) {
	for _, p := range all {
		named := append([]found{}, p.spans...)
		for _, b := range p.blocks {
			named = append(named, b.found)
		}
		for _, piece := range named {
			for i, line := range strings.Split(piece.text, "\n") {
				for _, name := range metricName.FindAllString(line, -1) {
					if !known[name] && !known[made.ReplaceAllString(name, "")] {
						faults = append(faults, fmt.Sprintf("%s:%d: no program shows the metric %s; the nearest is %s", p.Path, piece.line+i, name, nearest(name, known)))
					}
				}
			}
		}
	}
	return faults
}
