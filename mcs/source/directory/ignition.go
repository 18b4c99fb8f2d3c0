// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"errors"
	"fmt"

	"github.com/coreos/ignition/v2/config/v3_6"
)

// checkIgnition accepts every spec version that is served, and returns what Ignition itself finds wrong with a config, in one line. Findings it only warns of stand:
// what was rendered is served.
func checkIgnition(config []byte) error {
	_, report, err := v3_6.ParseCompatibleVersion(config)
	if err == nil {
		return nil
	}
	for _, entry := range report.Entries {
		if entry.Kind.IsFatal() {
			return fmt.Errorf("spec.config is not valid Ignition: %s at %s; mend the MachineConfig it was rendered from",
				entry.Message, entry.Context.String())
		}
	}
	return errors.New("spec.config is not valid Ignition: " + err.Error() + "; mend the MachineConfig it was rendered from")
}
