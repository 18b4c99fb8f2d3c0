// SPDX-License-Identifier: Apache-2.0

// Package systemd holds the unit, preset and tmpfiles files of a node as real files and hands them out as text: to the
// server, which serves the first-boot unit, and to whoever builds an OS image. It installs and starts nothing.
package systemd

import (
	_ "embed"
	"fmt"
	"strings"
)

const (
	// AgentPath is where the agent lands on a node, and what the first-boot unit runs.
	AgentPath = "/usr/local/bin/mcsnap-agent"

	// FirstbootName is the unit that runs the agent.
	FirstbootName = "mcsnap-firstboot.service"

	// DaemonPath is where an OS image has the reference daemon, and what its unit runs.
	DaemonPath = "/usr/local/bin/mcsnap-daemon"

	// DaemonName is the unit that runs the reference daemon.
	DaemonName = "mcsnap-daemon.service"

	// PresetName and TmpfilesName are for OS images: below /usr/lib/systemd/system-preset and /usr/lib/tmpfiles.d.
	PresetName   = "80-mcsnap.preset"
	TmpfilesName = "mcsnap.conf"
)

var (
	//go:embed mcsnap-firstboot.service
	firstboot string
	//go:embed mcsnap-daemon.service
	daemon string
	//go:embed 80-mcsnap.preset
	preset string
	//go:embed mcsnap.tmpfiles.conf
	tmpfiles string
)

// Firstboot is the text of the first-boot unit.
func Firstboot() string { return firstboot }

// Daemon is the text of the reference daemon's unit.
func Daemon() string { return daemon }

// Preset is the text of the preset file.
func Preset() string { return preset }

// Tmpfiles is the text of the tmpfiles file.
func Tmpfiles() string { return tmpfiles }

// architectures are systemd's names for the architectures an agent may be served for, by Go's.
var architectures = map[string]string{
	"amd64":   "x86-64",
	"arm64":   "arm64",
	"ppc64le": "ppc64-le",
	"riscv64": "riscv64",
	"s390x":   "s390x",
}

// FirstbootFor is the first-boot unit for one of several architectures, when a config carries an agent for each: its
// name, its text with ConditionArchitecture, and the path of its agent. goarch is Go's name for the architecture.
func FirstbootFor(goarch string) (name, text, agent string, err error) {
	arch, ok := architectures[goarch]
	if !ok {
		return "", "", "", fmt.Errorf("agent architecture %q: systemd has no name for it here: use amd64, arm64, ppc64le, riscv64 or s390x", goarch)
	}
	agent = AgentPath + "-" + goarch
	text = strings.ReplaceAll(firstboot, AgentPath, agent)
	text = strings.Replace(text, "[Unit]\n", "[Unit]\nConditionArchitecture="+arch+"\n", 1)
	return "mcsnap-firstboot-" + goarch + ".service", text, agent, nil
}
