// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_6"

	"github.com/mcsnap/mcsnap/snapshot/wording"
)

// checkIgnition accepts every spec version that is served, and returns what Ignition itself finds wrong with a config, in
// one line. Findings it only warns of stand: what was rendered is served.
func checkIgnition(config []byte) error {
	_, report, err := v3_6.ParseCompatibleVersion(config)
	if err == nil {
		return nil
	}
	for _, entry := range report.Entries {
		if entry.Kind.IsFatal() {
			where := "spec.config" + strings.TrimPrefix(entry.Context.String(), "$")
			return fmt.Errorf("%s is not valid Ignition: %s; mend the MachineConfig it was rendered from", where, wording.JSON(entry.Message))
		}
	}
	return errors.New("spec.config is not valid Ignition: " + wording.Error(err) + "; mend the MachineConfig it was rendered from")
}
