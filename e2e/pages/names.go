// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	metricName   = regexp.MustCompile(`\bmcsnap_[a-z0-9_]+\b`)
	made         = regexp.MustCompile(`_(bucket|sum|count)$`) // what a histogram makes of its name
	testName     = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z][A-Za-z0-9]+\b`)
	variableName = regexp.MustCompile(`\bMCS_[A-Z0-9_]+\b`)
)

// Metrics returns the metrics named in code on the pages that no program shows.
func Metrics(all []*Page, known map[string]bool) []string {
	return misnamed(all, metricName, "no program shows the metric %s", func(name string) string {
		if known[name] || known[made.ReplaceAllString(name, "")] {
			return ""
		}
		return nearest(name, known)
	})
}

// Tests returns the tests, benchmarks and fuzz targets named in code on the pages that are not among the known ones.
func Tests(all []*Page, known map[string]bool) []string {
	return misnamed(all, testName, "there is no %s", among(known))
}

// Variables returns the environment variables of mcs named in code on the pages that it does not read.
func Variables(all []*Page, known map[string]bool) []string {
	return misnamed(all, variableName, "mcs reads no variable %s", among(known))
}

// among tells the nearest of the known names, "" for one that is known.
func among(known map[string]bool) func(string) string {
	return func(name string) string {
		if known[name] {
			return ""
		}
		return nearest(name, known)
	}
}

// misnamed looks for names in the code on the pages. instead gives the name that may have been meant, "" for one that is good.
func misnamed(all []*Page, pattern *regexp.Regexp, words string, instead func(name string) string) (faults []string) {
	for _, p := range all {
		named := append([]found{}, p.spans...)
		for _, b := range p.blocks {
			named = append(named, b.found)
		}
		for _, piece := range named {
			for i, line := range strings.Split(piece.text, "\n") {
				for _, name := range pattern.FindAllString(line, -1) {
					if meant := instead(name); meant != "" {
						faults = append(faults, fmt.Sprintf("%s:%d: "+words+"; the nearest is %s", p.Path, piece.line+i, name, meant))
					}
				}
			}
		}
	}
	return faults
}
