// SPDX-License-Identifier: Apache-2.0

// Package daemon keeps a node at the config its pool asks for, starting from the snapshot the node was born with: it
// never reads the MachineConfig of its birth from the cluster. It is the reference for authors of other daemons, and
// what clusters without OpenShift's operator run.
package daemon
