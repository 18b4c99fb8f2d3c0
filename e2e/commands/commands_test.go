// SPDX-License-Identifier: Apache-2.0

package commands

import "testing"

// What a program says of itself is what it has: a few commands and flags that are there for sure.
func TestTrees(t *testing.T) {
	all, err := Trees(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, root := range all {
		for path, c := range root.All() {
			found[path] = true
			for _, f := range c.Flags {
				found[path+" --"+f.Name] = true
				for _, value := range f.Values {
					found[path+" --"+f.Name+"="+value] = true
				}
			}
		}
	}
	for _, want := range []string{
		"mcs serve --listen", "mcs store ls --state-dir", "ignition-stub render --as=machine-api",
		"mcsnap-agent status --root", "mcsnap-agent --version", "mcsnap-daemon run --reboot", "mcs completion bash --help",
	} {
		if !found[want] {
			t.Errorf("no %s", want)
		}
	}
}
