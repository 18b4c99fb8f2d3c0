// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcsnap/mcsnap/ignition-stub/stub"
)

// ErrNoRepair says that no edit is known which would make the stub work.
var ErrNoRepair = errors.New("no edit is known that repairs the stub; its remedies stand in the report")

// Repaired is the stub with the report's Repair done to it.
func (r *Report) Repaired(config []byte) ([]byte, error) {
	if len(r.Repair) == 0 {
		return nil, ErrNoRepair
	}
	decoder := json.NewDecoder(bytes.NewReader(config))
	decoder.UseNumber()
	var document map[string]any
	if err := decoder.Decode(&document); err != nil {
		return nil, fmt.Errorf("read the stub: %w", err)
	}
	ignition, _ := document["ignition"].(map[string]any)
	for _, patch := range r.Repair { // the two edits that addCA makes
		if patch.Path == "/ignition/security" {
			ignition["security"] = patch.Value
			continue
		}
		security, _ := ignition["security"].(map[string]any)
		tls, _ := security["tls"].(map[string]any)
		cas, ok := tls["certificateAuthorities"].([]any)
		if !ok {
			return nil, ErrNoRepair
		}
		tls["certificateAuthorities"] = append(cas, patch.Value)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return nil, fmt.Errorf("write the repaired stub: %w", err)
	}
	if _, err := stub.Validate(text.Bytes()); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}
