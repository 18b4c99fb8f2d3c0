// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		args []string
		says []string
		bad  bool
	}{
		"nothing":                  {says: []string{"good: 0 settings; judged as for a start of: -"}},
		"what is good":             {file: "serve: {gate: log}", says: []string{"good: 1 settings", "start of: serve"}},
		"all that is wrong":        {file: "serve:\n  lisen: [a]\n  most: b\n", says: []string{"c.yaml:2: serve.lisen: ", "c.yaml:3: serve.most: "}, bad: true},
		"what a command refuses":   {file: "serve: {gate: maybe}", says: []string{"serve: --gate maybe: use enforce or log (--gate is said in "}, bad: true},
		"only the named command":   {file: "serve: {gate: maybe}", args: []string{"store", "prune"}, says: []string{"good", "start of: store prune"}},
		"a command without a word": {args: []string{"serve"}, says: []string{"start of: serve"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, said, err := run(t, c.file, nil, append([]string{"config", "check"}, c.args...)...)
			if _, isBad := errors.AsType[*Error](err); isBad != c.bad || err != nil && !c.bad {
				t.Errorf("ends with %v", err)
			}
			for _, want := range c.says {
				if !strings.Contains(said, want) {
					t.Errorf("no %q in\n%s", want, said)
				}
			}
		})
	}
	var found report
	_, said, _ := run(t, "serve: {lisen: [a]}", nil, "config", "check", "-o", "json")
	if err := json.Unmarshal([]byte(said), &found); err != nil || len(found.Problems) != 1 || found.Problems[0].Key != "serve.lisen" {
		t.Errorf("%v\n%s", err, said)
	}
}

// Every value says where it comes from, and a command shows only what it has.
func TestShow(t *testing.T) {
	env := map[string]string{"MCS_SERVE_MOST": "7"}
	_, said, err := run(t, "state-dir: /a\nserve: {listen: [':2', ':3']}", env, "config", "show", "serve", "-o", "json")
	var list []effective
	if err := errors.Join(err, json.Unmarshal([]byte(said), &list)); err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, e := range list {
		value, _ := json.Marshal(e.Value)
		from := e.From
		if at := strings.LastIndex(from, "/"); at >= 0 {
			from = from[at+1:]
		}
		shown = append(shown, e.Key+" "+string(value)+" "+from)
	}
	want := []string{
		`serve.gate "enforce" default`, `serve.listen [":2",":3"] c.yaml:2`, `serve.most 7 MCS_SERVE_MOST`, `serve.name "" default`,
		`serve.open true default`, `serve.pools [] default`, `state-dir "/a" c.yaml:1`,
	}
	if slices.Sort(shown); !slices.Equal(shown, want) {
		t.Errorf("got  %q\nwant %q", shown, want)
	}
	if _, said, err = run(t, "", env, "config", "show"); err != nil || !strings.Contains(strings.Join(strings.Fields(said), " "), "store.prune.keep 1h0m0s default") || strings.Count(said, "state-dir") != 1 {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestWrongCalls(t *testing.T) {
	for _, args := range [][]string{{"config", "look"}, {"config", "show", "nothing"}, {"config", "check", "-o", "xml"}, {"config", "show", "store"}} {
		_, _, err := run(t, "", nil, args...)
		if _, usage := errors.AsType[*UsageError](err); !usage {
			t.Errorf("%q: %v", args, err)
		}
	}
}
