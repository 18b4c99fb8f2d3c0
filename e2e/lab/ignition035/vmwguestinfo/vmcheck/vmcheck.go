// SPDX-License-Identifier: Apache-2.0

// Package vmcheck stands in for a VMware library that is no longer to be had; the lab never runs on VMware.
package vmcheck

// IsVirtualWorld says that this is not VMware.
func IsVirtualWorld() bool { return false }
