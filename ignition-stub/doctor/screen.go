// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Screen is the report for people: a verdict a line, remedies below theirs, the edit at the end.
func (r *Report) Screen() string {
	var b strings.Builder
	counts := map[Verdict]int{}
	for _, c := range r.Checks {
		counts[c.Verdict]++
		fmt.Fprintf(&b, "%-5s %-12s %s\n", c.Verdict, c.Name, c.Text)
		if c.Remedy != "" {
			fmt.Fprintf(&b, "%19s→ %s\n", "", c.Remedy)
		}
	}
	if len(r.Repair) > 0 {
		patch, err := json.Marshal(r.Repair)
		if err != nil {
			panic(err) // only strings
		}
		fmt.Fprintf(&b, "\nThe edit that repairs the stub (a JSON Patch; --repair FILE writes the repaired stub):\n%s\n", patch)
	}
	switch {
	case counts[Fail] > 0:
		fmt.Fprintf(&b, "\nMachines with this stub do not come up: %d of %d checks failed.\n", counts[Fail], len(r.Checks))
	case counts[Warn] > 0:
		fmt.Fprintf(&b, "\nMachines with this stub come up; %d warnings.\n", counts[Warn])
	default:
		b.WriteString("\nMachines with this stub come up.\n")
	}
	return b.String()
}
