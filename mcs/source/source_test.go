// SPDX-License-Identifier: Apache-2.0

package source

import "testing"

// Field case 20: which of the two configurations of a pool a new node gets.
func TestSelect(t *testing.T) {
	for _, c := range []struct {
		name string
		pool Pool
		want string
	}{
		{"nobody has the new one yet", Pool{Spec: "new", Status: "old"}, "old"},
		{"one machine has proved the new one", Pool{Spec: "new", Status: "old", Updated: 1}, "new"},
		{"a settled pool", Pool{Spec: "same", Status: "same", Updated: 5}, "same"},
		{"a pool without machines", Pool{Spec: "same", Status: "same"}, "same"},
		{"a pool that was just made", Pool{Spec: "new"}, ""},
		{"an empty pool", Pool{}, ""},
		{"a count below zero counts for nothing", Pool{Spec: "new", Status: "old", Updated: -1}, "old"},
		{"updated machines, but the spec was emptied", Pool{Status: "old", Updated: 3}, ""},
		{"a problem does not change the choice", Pool{Spec: "new", Status: "old", Updated: 2, Problem: "x"}, "new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Select(c.pool); got != c.want {
				t.Errorf("Select = %q, want %q", got, c.want)
			}
		})
	}
}
