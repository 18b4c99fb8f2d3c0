// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/snapshot"
)

func sealed(t testing.TB, ignition string) (*snapshot.Snapshot, error) {
	t.Helper()
	return snapshot.Seal([]byte(`{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","metadata":{"name":"rendered-x-1"},"spec":{"config":`+ignition+`}}`), "x")
}

func TestConfigsThatAreNone(t *testing.T) {
	for config, problem := range map[string]string{
		`{"ignition":{"version":"2.2.0"}}`:                                                                              "rendered-x-1",
		`{"ignition":{"version":"9.0.0"}}`:                                                                              "rendered-x-1",
		`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"relative"}]}}`:                                    "path not absolute",
		`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/a"},{"path":"/a"}]}}`:                            "duplicate",
		`{"ignition":{"version":"3.4.0"},"systemd":{"units":[{"name":"no-suffix"}]}}`:                                   "extension",
		`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:;base64,!!!"}}]}}`: "",
	} {
		s, err := sealed(t, config)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := Of(s, Accounts{})
		if problem == "" {
			if err == nil && tree.Entries["/a"].Problem == "" {
				t.Errorf("%s: taken", config)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line with %q", config, err, problem)
		}
	}
}

func TestAccounts(t *testing.T) {
	s, err := sealed(t, `{"ignition":{"version":"3.4.0"},"passwd":{"users":[{"name":"core","sshAuthorizedKeys":["k"]}]},
		"storage":{"files":[{"path":"/a","user":{"name":"u"},"group":{"name":"g"},"contents":{"source":"data:,x"}}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := Of(s, Accounts{Users: map[string]User{"u": {7, 8, "/"}, "core": {1000, 1001, "/var/home/core"}}, Groups: map[string]int{"g": 9}})
	if err != nil {
		t.Fatal(err)
	}
	if file := tree.Entries["/a"]; *file.UID != 7 || *file.GID != 9 {
		t.Errorf("/a belongs to %d:%d", *file.UID, *file.GID)
	}
	keys, there := tree.Entries["/var/home/core/.ssh/authorized_keys.d/ignition"]
	if !there || *keys.UID != 1000 || *keys.GID != 1001 || string(keys.Content) != "k\n" {
		t.Errorf("the keys: %+v in %v", keys, tree.Entries)
	}
}

// Whatever is sealed, what it wants on disk is found out without a panic, and the same config is reconcilable with itself.
func FuzzOf(f *testing.F) {
	f.Add(`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/a","mode":420,"contents":{"source":"data:,x"}}]}}`)
	f.Add(`{"ignition":{"version":"3.5.0"},"systemd":{"units":[{"name":"a.service","dropins":[{"name":"b.conf","contents":""}],"mask":true}]}}`)
	f.Add(`{"ignition":{"version":"3.0.0"},"passwd":{"users":[{"name":"core","sshAuthorizedKeys":["k"]}]}}`)
	f.Fuzz(func(t *testing.T, config string) {
		s, err := sealed(t, config)
		if err != nil {
			return
		}
		one, err := Of(s, Accounts{})
		if err != nil {
			return
		}
		other, err := Of(s, Accounts{})
		if err != nil || len(Unreconcilable(one, other)) > 0 {
			t.Errorf("%v, %v", err, Unreconcilable(one, other))
		}
	})
}
