// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_4"
	"sigs.k8s.io/yaml"
)

// What Ignition's own parser and encoding/json say of each value, and what a person reads.
func TestWrongTypes(t *testing.T) {
	for config, want := range map[string]string{
		`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/a","mode":"0644"}]}}`:               "storage.files.mode is text, want a whole number",
		`{"ignition":{"version":"3.4.0"},"storage":{"files":{"path":"/a"}}}`:                               "storage.files is an object, want a list",
		`{"ignition":{"version":"3.4.0"},"systemd":{"units":[{"name":5}]}}`:                                "systemd.units.name is a number, want text",
		`{"ignition":{"version":"3.4.0"},"passwd":{"users":[{"name":"c","sshAuthorizedKeys":"x"}]}}`:       "passwd.users.sshAuthorizedKeys is text, want a list",
		`{"ignition":{"version":"3.4.0"},"passwd":{"users":[{"name":"c","sshAuthorizedKeys":[{"a":1}]}]}}`: "passwd.users.sshAuthorizedKeys is an object, want text",
		`{"ignition":{"version":"3.4.0"},"storage":5}`:                                                     "storage is a number, want an object",
		`{"ignition":{"version":"3.4.0"},"systemd":{"units":[{"name":"a.service","enabled":"yes"}]}}`:      "systemd.units.enabled is text, want true or false",
		`{"ignition":5}`: "gnition is a number, want an object",
	} {
		_, report, err := v3_4.Parse([]byte(config))
		if err == nil {
			t.Errorf("Ignition accepts %s", config)
			continue
		}
		said := JSON(err.Error() + "; " + report.String())
		if !strings.Contains(said, want) || strings.Contains(said, "Go ") || strings.Contains(said, "types.") {
			t.Errorf("%s: %q, want %q in it", config, said, want)
		}
	}
	var object struct {
		Spec struct {
			CA    []byte         `json:"ca"`
			Count int32          `json:"count"`
			Infra map[string]any `json:"infra"`
		} `json:"spec"`
	}
	for text, want := range map[string]string{
		`{"spec":{"ca":7}}`:        "spec.ca is a number, want text in base64",
		`{"spec":{"count":"two"}}`: "spec.count is text, want a whole number",
		`{"spec":{"count":1.5}}`:   "spec.count is a number, want a whole number",
		`{"spec":{"infra":[]}}`:    "spec.infra is a list, want an object",
		`[]`:                       "is a list, want an object",
	} {
		if err := json.Unmarshal([]byte(text), &object); err == nil || Error(err) != want {
			t.Errorf("%s: %q, want %q", text, Error(err), want)
		}
		if err := yaml.Unmarshal([]byte(text), &object); err == nil || Error(err) != want {
			t.Errorf("%s in YAML: %q, want %q", text, Error(err), want)
		}
	}
	if other := "a.yaml: no such file"; JSON(other) != other {
		t.Errorf("another message became %q", JSON(other))
	}
}
