// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/coreos/ignition/v2/config/v3_6/types"

	"github.com/mcsnap/mcsnap/snapshot/contents"
	"github.com/mcsnap/mcsnap/snapshot/wording"
)

// inline replaces every remote source in a config by the bytes it stands for.
func (r *resolution) inline(config []byte, version string) ([]byte, error) {
	parsed, _, err := v3_6.ParseCompatibleVersion(config)
	if err != nil {
		return nil, wrong("the merged config", "Ignition finds: %s", wording.Error(err))
	}
	// The stages that fetch contents start anew, with the settings of the whole.
	r.settings = settings{}
	if err := r.use(parsed); err != nil {
		return nil, err
	}
	object, err := decode(config)
	if err != nil {
		return nil, err
	}
	if err := r.inlineBelow(object, "", version); err != nil {
		return nil, err
	}
	return encode(object)
}

// inlineBelow finds sources wherever they stand: contents of files, pieces appended to them, keys of disks, CAs.
func (r *resolution) inlineBelow(value any, at, version string) error {
	switch value := value.(type) {
	case []any:
		for i, element := range value {
			if err := r.inlineBelow(element, fmt.Sprintf("%s.%d", at, i), version); err != nil {
				return err
			}
		}
	case map[string]any:
		if source, ok := value["source"].(string); ok && source != "" && !strings.HasPrefix(source, "data:") {
			return r.inlineOne(value, strings.TrimPrefix(at, "."), version)
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if err := r.inlineBelow(value[key], at+"."+key, version); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *resolution) inlineOne(resource map[string]any, at, version string) error {
	var reference types.Resource
	text, err := json.Marshal(resource)
	if err == nil {
		err = json.Unmarshal(text, &reference)
	}
	if err != nil {
		return wrong(at, "not a reference to contents")
	}
	data, err := r.get(reference, "file "+at, nil, nil)
	if err != nil {
		return err
	}
	delete(resource, "httpHeaders") // they were for the server, and may hold a token
	delete(resource, "compression")
	resource["source"] = contents.Base64(data)
	// Ignitions below 3.1 cannot read gzip from a data URL.
	if packed := contents.Base64(contents.Compress(data)); version >= "3.1.0" && len(packed) < len(contents.Base64(data)) {
		resource["source"], resource["compression"] = packed, contents.Gzip
	}
	return nil
}
