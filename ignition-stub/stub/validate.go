// SPDX-License-Identifier: Apache-2.0

package stub

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	v2_2 "github.com/coreos/ignition/config/v2_2"
	"github.com/coreos/ignition/v2/config/v3_6"

	"github.com/mcsnap/mcsnap/snapshot/wording"
)

// Validate asks Ignition's own validator of the config's version, 2.2 or 3.0 to 3.6. Its warnings are returned; its
// errors are an [InputError].
func Validate(config []byte) (warnings []string, err error) {
	var head struct {
		Ignition struct {
			Version Version `json:"version"`
		} `json:"ignition"`
	}
	if json.Unmarshal(config, &head) == nil && head.Ignition.Version == V2_2 {
		_, report, err := v2_2.Parse(config)
		for _, entry := range report.Entries {
			warnings = append(warnings, entry.Message)
		}
		if err != nil || report.IsFatal() {
			return nil, invalid(warnings, err)
		}
		return warnings, nil
	}
	_, report, err := v3_6.ParseCompatibleVersion(config)
	for _, entry := range report.Entries {
		warnings = append(warnings, fmt.Sprintf("%s: %s", entry.Context.String(), entry.Message))
	}
	if err != nil || report.IsFatal() {
		return nil, invalid(warnings, err)
	}
	return warnings, nil
}

func invalid(entries []string, err error) error {
	if len(entries) == 0 && err != nil {
		entries = []string{err.Error()}
	}
	if len(entries) == 0 {
		entries = []string{errors.ErrUnsupported.Error()}
	}
	return &InputError{Field: "Ignition finds", Problem: wording.JSON(strings.Join(entries, "; "))}
}
