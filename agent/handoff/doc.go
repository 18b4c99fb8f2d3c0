// SPDX-License-Identifier: Apache-2.0

// Package handoff is a node's first boot: it makes sure that the snapshot the node was born with is whole, and hands the
// config in it over to the node's daemon. It runs on every boot until the node has joined, may be cut at any point and
// run again, and changes nothing on a node that has joined. It is no client of Kubernetes; it talks to mcsnap's server
// only to get a damaged snapshot back, by digest and never by pool.
package handoff

// The files of a node, all below its root.
const (
	// AnnotationsPath holds what the node will be annotated with. Its writer is the server, through Ignition; its rename
	// to BootstrappedPath is the daemon's sign that bootstrap has ended, so that this package only ever reads it.
	AnnotationsPath  = "/etc/machine-config-daemon/node-annotations.json"
	BootstrappedPath = AnnotationsPath + ".bak"

	// CurrentPath is where a daemon finds the config the node runs, as a MachineConfig in JSON.
	CurrentPath = "/etc/machine-config-daemon/currentconfig"

	// KubeletCertPath is the kubelet's client certificate: a node that has one has joined.
	KubeletCertPath = "/var/lib/kubelet/pki/kubelet-client-current.pem"

	// ConfigPath is the agent's own configuration, TokenPath the credential it shows to servers that want one.
	ConfigPath = "/etc/mcsnap/agent.yaml"
	TokenPath  = "/etc/mcsnap/token"

	// RecordPath tells that and how the config was handed over.
	RecordPath = "/var/lib/mcsnap/handover.json"
)

// Limits in bytes for what is read beside the snapshot, far above what is ever written there.
const (
	maxSmall   = 1 << 20
	maxCurrent = 16 << 20
)
