// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
)

type row struct {
	at         float64
	lane, what string
}

// rows is a timeline as a list in the order of time.
func (t timeline) rows() (rows []row) {
	for _, l := range t.lanes {
		for _, span := range l.spans {
			begins, ends := verbs[span.Kind][0], verbs[span.Kind][1]
			rows = append(rows, row{span.from, l.name, span.Label + begins})
			if span.to < t.seconds {
				rows = append(rows, row{span.to, l.name, span.Label + ends})
			}
		}
		for _, mark := range l.marks {
			rows = append(rows, row{mark.at, l.name, mark.Label})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.at, b.at) })
	return rows
}

var verbs = map[Kind][2]string{
	Generation: {" is rendered", " is deleted"},
	Initramfs:  {" begins", " is done"},
	Booting:    {" begins", " is over"},
	Server:     {" answers", " is gone"},
}
