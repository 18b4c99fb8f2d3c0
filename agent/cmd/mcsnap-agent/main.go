// SPDX-License-Identifier: Apache-2.0

// Command mcsnap-agent is the node's side of mcsnap on first boot: it hands the config that the node was born with over
// to the node's daemon, and tells what state that hand-over is in.
package main

import (
	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/agent/command"
)

// version is set by the build.
var version = "devel"

func main() { command.Main(topmost()) }

func topmost() *cobra.Command {
	var at string
	root := &cobra.Command{
		Use:   "mcsnap-agent",
		Short: "Hand the config a node was born with over to its daemon",
		Long: `mcsnap-agent works on the files of one node and knows no cluster.

On every boot until the node has joined, the unit mcsnap-firstboot.service runs
"mcsnap-agent firstboot": it verifies /etc/mcd-snapshot.json, gets it back by
digest if it is damaged, and writes the config in it where the daemon looks for
its current one. The other commands change nothing.

` + command.ExitCodes,
		Version: version,
	}
	command.AtRoot(root, &at)
	return command.Root(root, firstbootCommand(&at), statusCommand(&at), verifyCommand(&at), showCommand(&at), doctorCommand(&at))
}
