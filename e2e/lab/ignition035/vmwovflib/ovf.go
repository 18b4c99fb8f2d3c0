// SPDX-License-Identifier: Apache-2.0

// Package ovf stands in for a library of VMware that is no longer to be had. Ignition 0.35 asks it for one thing, the
// properties of an OVF environment, and only on VMware; the lab never runs there.
package ovf

import "errors"

// Environment is what Ignition reads properties from.
type Environment struct{ Properties map[string]string }

// ReadEnvironment always fails: there is no OVF environment in the lab.
func ReadEnvironment([]byte) (Environment, error) {
	return Environment{}, errors.New("no OVF environment in the lab")
}
