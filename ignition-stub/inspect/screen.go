// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"strings"
)

// Screen shows a document to people: what it is in the first lines, then a line for each entry.
func (d *Document) Screen() string {
	var b strings.Builder
	b.WriteString(d.Kind)
	if d.Version != "" {
		b.WriteString(", spec " + d.Version)
	}
	b.WriteString("\n")
	if n := d.Names; n != nil {
		if n.Name != "" {
			fmt.Fprintf(&b, "snapshot of %s, pool %s, %s\n", n.Name, n.Pool, n.Digest)
		}
		fmt.Fprintf(&b, "snapshot: %s\n", n.Verdict)
	} else if d.Kind == Ignition {
		b.WriteString("no snapshot in it\n")
	}
	counts, order := map[string]int{}, []string{}
	for _, e := range d.Entries {
		if counts[e.Kind]++; counts[e.Kind] == 1 {
			order = append(order, e.Kind)
		}
	}
	for _, kind := range order {
		b.WriteString("\n")
		for _, e := range d.Entries {
			if e.Kind == kind {
				b.WriteString(e.line())
			}
		}
	}
	return b.String()
}

func (e *Entry) line() string {
	var fields []string
	for _, f := range e.Fields {
		switch {
		case f.cosmetic:
		case f.Name == "":
			fields = append(fields, f.Shown)
		default:
			fields = append(fields, f.Name+" "+f.Shown)
		}
	}
	return strings.TrimRight(fmt.Sprintf("%s  %s", strings.TrimSpace(e.Kind+" "+e.Name), strings.Join(fields, ", ")), " ") + "\n"
}
