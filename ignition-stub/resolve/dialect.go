// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/coreos/ignition/v2/config/v3_0"
	"github.com/coreos/ignition/v2/config/v3_1"
	"github.com/coreos/ignition/v2/config/v3_2"
	"github.com/coreos/ignition/v2/config/v3_3"
	"github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_5"
	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/coreos/vcontext/report"
)

// dialect is Ignition's code for one spec version. Its parse reads that version and all older ones.
type dialect struct {
	parse func(raw []byte) (any, error)
	merge func(parent, child any) any
}

// dialects are by version. Merging in the version that the configs have spares a conversion down from the newest.
var dialects = map[string]dialect{
	"3.0.0": dialectOf(v3_0.ParseCompatibleVersion, v3_0.Merge),
	"3.1.0": dialectOf(v3_1.ParseCompatibleVersion, v3_1.Merge),
	"3.2.0": dialectOf(v3_2.ParseCompatibleVersion, v3_2.Merge),
	"3.3.0": dialectOf(v3_3.ParseCompatibleVersion, v3_3.Merge),
	"3.4.0": dialectOf(v3_4.ParseCompatibleVersion, v3_4.Merge),
	"3.5.0": dialectOf(v3_5.ParseCompatibleVersion, v3_5.Merge),
	"3.6.0": dialectOf(v3_6.ParseCompatibleVersion, v3_6.Merge),
}

func dialectOf[C any](parse func([]byte) (C, report.Report, error), merge func(C, C) C) dialect {
	return dialect{
		parse: func(raw []byte) (any, error) {
			config, report, err := parse(raw)
			if err == nil && report.IsFatal() {
				err = fmt.Errorf("%s", report.String())
			}
			return config, err
		},
		merge: func(parent, child any) any { return merge(parent.(C), child.(C)) },
	}
}

// withoutReferences writes a merged config as JSON, less the references to what is in it now.
func withoutReferences(merged any) ([]byte, error) {
	text, err := json.Marshal(merged)
	if err != nil {
		return nil, fmt.Errorf("write the merged config: %w", err)
	}
	config, err := decode(text)
	if err != nil {
		return nil, err
	}
	if ignition, ok := config["ignition"].(map[string]any); ok {
		delete(ignition, "config")
	}
	prune(config)
	return encode(config)
}

// prune removes the empty objects that a typed config leaves where nothing was set.
func prune(object map[string]any) {
	for key, value := range object {
		switch value := value.(type) {
		case map[string]any:
			if prune(value); len(value) == 0 {
				delete(object, key)
			}
		case []any:
			for _, element := range value {
				if element, ok := element.(map[string]any); ok {
					prune(element)
				}
			}
		}
	}
}

func decode(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // modes and ids stay the integers they are
	var config map[string]any
	if err := decoder.Decode(&config); err != nil {
		return nil, fmt.Errorf("read the merged config: %w", err)
	}
	return config, nil
}

func encode(config map[string]any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(config); err != nil {
		return nil, fmt.Errorf("write the merged config: %w", err)
	}
	return text.Bytes(), nil
}
