// SPDX-License-Identifier: Apache-2.0

// Command mcsnap-daemon keeps a node at the config its annotations ask for, starting from the snapshot it was born with.
// It is the reference daemon, for clusters without OpenShift's operator.
package main

import (
	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/agent/command"
)

// version is set by the build.
var version = "devel"

func main() { command.Main(topmost()) }

func topmost() *cobra.Command {
	var f flags
	root := &cobra.Command{
		Use:   "mcsnap-daemon",
		Short: "Keep a node at the config its pool asks for",
		Long: `mcsnap-daemon is the reference daemon of mcsnap, for clusters without OpenShift's
operator. It starts from /etc/mcd-snapshot.json, watches its own Node, and brings
the node's files, units and SSH keys to the config that the annotation
machineconfiguration.openshift.io/desiredConfig names.

"mcsnap-daemon run" is what the unit mcsnap-daemon.service does. "status" tells how
far the node is, "plan" what an update would change. Those two change nothing, may
be called while the daemon runs, and take -o json.

` + command.ExitCodes,
		Version: version,
	}
	command.AtRoot(root, &f.root)
	return command.Root(root, runCommand(&f), planCommand(&f), statusCommand(&f))
}
