// SPDX-License-Identifier: Apache-2.0

// Package systemd holds the unit, preset and tmpfiles files of a node as real files, and hands them out: to the server,
// which serves the first-boot unit, and to whoever builds an OS image. It starts and asks nothing.
package systemd

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed system/*.service system-preset/*.preset tmpfiles.d/*.conf
var files embed.FS

// Files is the tree as it goes below /usr/lib/systemd (system, system-preset) and /usr/lib (tmpfiles.d) of an OS image.
func Files() fs.FS { return files }

// AgentPath is where the first-boot unit expects the agent on a node.
const AgentPath = "/usr/local/bin/mcsnap-agent"

const firstboot = "system/mcsnap-firstboot.service"

// architectures maps Go's names to those of ConditionArchitecture= (systemd.unit(5)).
var architectures = map[string]string{
	"amd64":   "x86-64",
	"arm64":   "arm64",
	"ppc64le": "ppc64-le",
	"riscv64": "riscv64",
	"s390x":   "s390x",
}

// Unit is one unit file.
type Unit struct {
	Name     string // such as mcsnap-firstboot.service
	Contents string
	Agent    string // absolute path of the program it runs
}

// Firstboot returns the first-boot unit for nodes of one Go architecture. When agents of several architectures are
// served to one pool, every node gets all units and all agents: multiArch then puts the architecture into both names
// and makes the unit a condition of it, so that each node runs its own.
func Firstboot(arch string, multiArch bool) (Unit, error) {
	condition, known := architectures[arch]
	if !known {
		return Unit{}, fmt.Errorf("architecture %q: no first-boot unit for it; use a Go architecture that systemd knows: amd64, arm64, ppc64le, riscv64 or s390x", arch)
	}
	contents, err := files.ReadFile(firstboot)
	if err != nil {
		panic(err) // embedded above
	}
	unit := Unit{Name: "mcsnap-firstboot.service", Contents: string(contents), Agent: AgentPath}
	if !multiArch {
		return unit, nil
	}
	unit.Name = "mcsnap-firstboot-" + arch + ".service"
	unit.Agent = AgentPath + "-" + arch
	unit.Contents = strings.ReplaceAll(unit.Contents, AgentPath, unit.Agent)
	unit.Contents = strings.Replace(unit.Contents, "[Unit]\n", "[Unit]\nConditionArchitecture="+condition+"\n", 1)
	return unit, nil
}
