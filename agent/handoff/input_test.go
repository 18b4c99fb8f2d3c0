// SPDX-License-Identifier: Apache-2.0

package handoff_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/snapshot"
)

func TestReadConfig(t *testing.T) {
	const head = "apiVersion: mcsnap/v1\n"
	for text, problem := range map[string]string{
		head + "servers: [https://a:22623, \"https://[fe80::1]:22623\"]\nca: x\nauthHeader: Authorization\n": "",
		head + "servers: [https://a:22623]\nonFailure: block\n":                                              "",
		head + "servers: [http://a:22624]\n":                                                                 "",
		head + "servers: [https://a]\nautHeader: A\n":                                                        `unknown key "autHeader": did you mean "authHeader"?`,
		head + "servers: [https://a]\nCA: A\n":                                                               `did you mean "ca"?`,
		head + "server: [https://a]\n":                                                                       `did you mean "servers"?`,
		head + "servers: [https://a]\non-failure: block\n":                                                   `did you mean "onFailure"?`,
		head + "servers: [https://a]\nonFailure: maybe\n":                                                    "use continue or block",
		head + "servers: [https://a]\nservers: [https://b]\n":                                                "already",
		head + "servers: []\n":                                                                               "at least one",
		head + "servers: https://a\n":                                                                        "servers",
		head + "servers: [a.example.com]\n":                                                                  "no http or https address",
		head + "servers: [ftp://a]\n":                                                                        "no http or https address",
		"servers: [https://a]\n":                                                                             `want "mcsnap/v1"`,
		"apiVersion: mcsnap/v2\nservers: [https://a]\n":                                                      `want "mcsnap/v1"`,
		"":                          "apiVersion",
		"null":                      "apiVersion",
		"[]":                        "is a list, want an object",
		strings.Repeat("[", 10_000): "",
	} {
		dir := born(t, sealed(t, "1", 1), nil)
		if err := os.WriteFile(filepath.Join(dir, handoff.ConfigPath), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		config, err := handoff.ReadConfig(open(t, dir, nil))
		_, isInput := errors.AsType[*handoff.InputError](err)
		switch {
		case err == nil && (problem != "" || config == nil || len(config.Servers) == 0 || strings.HasPrefix(text, "[[")):
			t.Errorf("%.60q: taken as %+v", text, config)
		case err != nil && problem == "" && !strings.HasPrefix(text, "[["):
			t.Errorf("%.60q: %v", text, err)
		case err != nil && (!isInput || !strings.Contains(err.Error(), problem) || !strings.Contains(err.Error(), handoff.ConfigPath)):
			t.Errorf("%.60q: got %v, want an InputError with %q", text, err, problem)
		case err != nil && strings.Contains(err.Error(), "\n"):
			t.Errorf("%.60q: several lines: %v", text, err)
		}
	}
}

// Field case 93: what is truncated, null, of a wrong type or nested without end is an error and never a panic, for every
// file that is read, and only a node that can be handed over is.
func TestHostileFiles(t *testing.T) {
	s := sealed(t, "1", 3)
	hostile := []string{"null", "{}", "[]", `"text"`, "0", "{", "\x00\x00\x00", "\xff\xfe", `{"metadata":null}`, `{"metadata":{"name":5}}`,
		`{"apiVersion":"mcsnap/v1","kind":"MachineConfigSnapshot","digest":null,"machineConfig":null}`,
		`{"mcsnap/birth-snapshot":"sha256:zz"}`, `{"mcsnap/birth-snapshot":null}`,
		strings.Repeat("[", 10_000), strings.Repeat(`{"a":`, 10_000), strings.Repeat(`{"machineConfig":`, 10_000)}
	for _, name := range []string{snapshot.Path, handoff.AnnotationsPath, handoff.CurrentPath, handoff.RecordPath, handoff.ConfigPath, handoff.TokenPath} {
		for _, content := range hostile {
			dir := born(t, s, map[string]string{name: content})
			_ = handoff.Inspect(open(t, dir, nil)) // any answer is right that is one
			outcome, err := handoff.Run(t.Context(), options(open(t, dir, nil), server(1)))
			if err == nil && outcome.Result != handoff.HandedOver {
				t.Errorf("%s holds %.40q: %+v", name, content, outcome)
			}
			if _, written := os.Stat(filepath.Join(dir, handoff.CurrentPath)); err == nil && written != nil {
				t.Errorf("%s holds %.40q: told as handed over, and is not: %v", name, content, written)
			}
		}
	}
}

func TestInspect(t *testing.T) {
	s, twin, other := sealed(t, "1", 12), sealed(t, "1", 5), sealed(t, "2", 5)
	exported, err := s.Export("")
	if err != nil {
		t.Fatal(err)
	}
	indented := strings.ReplaceAll(string(exported), `{"`, "{\n\"")
	for name, test := range map[string]struct {
		files    map[string]string
		content  handoff.Content
		verified bool
		joined   string
		problem  string
	}{
		"fresh":       {nil, handoff.Absent, true, "", ""},
		"whole":       {map[string]string{handoff.CurrentPath: string(exported)}, handoff.Whole, true, "", ""},
		"same spec":   {map[string]string{handoff.CurrentPath: indented}, handoff.SameSpec, true, "", ""},
		"emptied":     {map[string]string{handoff.CurrentPath: string(emptied(t, s))}, handoff.Emptied, true, "", ""},
		"other spec":  {map[string]string{handoff.CurrentPath: string(twin.MachineConfig())}, handoff.OtherSpec, true, "", ""},
		"moved on":    {map[string]string{handoff.CurrentPath: string(other.MachineConfig())}, handoff.OtherConfig, true, handoff.CurrentPath, ""},
		"garbage":     {map[string]string{handoff.CurrentPath: "x"}, handoff.Unreadable, true, "", ""},
		"no snapshot": {map[string]string{handoff.CurrentPath: string(exported), snapshot.Path: ""}, handoff.Unknown, false, "", ""},
		"joined":      {map[string]string{handoff.KubeletCertPath: "x"}, handoff.Absent, true, handoff.KubeletCertPath, ""},
		"mixed":       {map[string]string{handoff.AnnotationsPath: annotations(other)}, handoff.Absent, true, "", "mixed"},
	} {
		dir := born(t, s, test.files)
		before := tree(t, dir)
		got := handoff.Inspect(open(t, dir, nil))
		if got.Current.Content != test.content || got.Snapshot.Verified != test.verified || got.Joined != test.joined ||
			!strings.Contains(strings.Join(got.Problems, " "), test.problem) || test.problem == "" && len(got.Problems) > 0 {
			t.Errorf("%s: got %+v", name, got)
		}
		if after := tree(t, dir); len(after) != len(before) {
			t.Errorf("%s: the node was changed", name)
		}
	}
}

func FuzzReadConfig(f *testing.F) {
	f.Add(agentYAML)
	f.Add("servers: {a: b}\n? [x]\n: y")
	f.Fuzz(func(t *testing.T, text string) {
		dir := born(t, sealed(t, "1", 1), map[string]string{handoff.ConfigPath: text})
		config, err := handoff.ReadConfig(open(t, dir, nil))
		if err == nil && config != nil && (len(config.Servers) == 0 || config.APIVersion != snapshot.APIVersion) {
			t.Errorf("taken: %+v", config)
		}
	})
}

// Whatever the annotations file holds, the run ends, and hands over only what it names.
func FuzzAnnotations(f *testing.F) {
	s := sealed(f, "1", 1)
	f.Add(annotations(s))
	f.Add(`{"machineconfiguration.openshift.io/currentConfig":"rendered-worker-2"}`)
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" {
			return // no file at all
		}
		dir := born(t, s, map[string]string{handoff.AnnotationsPath: text})
		outcome, err := handoff.Run(t.Context(), options(open(t, dir, nil), nil))
		if err == nil && outcome.Result == handoff.HandedOver {
			if status := handoff.Inspect(open(t, dir, nil)); status.Current.Content != handoff.Whole || len(status.Problems) > 0 {
				t.Errorf("%+v", status)
			}
		}
	})
}
