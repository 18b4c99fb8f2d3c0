// SPDX-License-Identifier: Apache-2.0

package systemd_test

import (
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/systemd"
)

func TestFirstbootRunsTheAgent(t *testing.T) {
	if !strings.Contains(systemd.Firstboot(), "ExecStart="+systemd.AgentPath+" ") {
		t.Errorf("the unit does not run %s:\n%s", systemd.AgentPath, systemd.Firstboot())
	}
}

// With agents for several architectures only the node's own unit may run, with its own agent.
func TestFirstbootFor(t *testing.T) {
	for goarch, arch := range map[string]string{"amd64": "x86-64", "arm64": "arm64", "ppc64le": "ppc64-le", "s390x": "s390x"} {
		name, text, agent, err := systemd.FirstbootFor(goarch)
		if err != nil {
			t.Fatal(err)
		}
		if name != "mcsnap-firstboot-"+goarch+".service" || agent != systemd.AgentPath+"-"+goarch {
			t.Errorf("%s: %s, %s", goarch, name, agent)
		}
		if strings.Count(text, "\nConditionArchitecture="+arch+"\n") != 1 {
			t.Errorf("%s: no ConditionArchitecture=%s in\n%s", goarch, arch, text)
		}
		if left := strings.ReplaceAll(text, agent, ""); strings.Contains(left, systemd.AgentPath) {
			t.Errorf("%s: the unit still names %s:\n%s", goarch, systemd.AgentPath, text)
		}
	}
	if _, _, _, err := systemd.FirstbootFor("vax"); err == nil {
		t.Error("an unknown architecture is no error")
	}
}
