// SPDX-License-Identifier: Apache-2.0

package specver

import (
	"encoding/json"
	"fmt"

	"github.com/coreos/ign-converter/translate/v32tov31"
	"github.com/coreos/ign-converter/translate/v33tov32"
	"github.com/coreos/ign-converter/translate/v34tov33"
	"github.com/coreos/ign-converter/translate/v35tov34"
	"github.com/coreos/ignition/v2/config/util"
	v3_4 "github.com/coreos/ignition/v2/config/v3_4/types"
	v3_5 "github.com/coreos/ignition/v2/config/v3_5/types"
	"github.com/coreos/ignition/v2/config/v3_6/types"
)

// Down writes a config for spec version to, as JSON that this version's own parser accepts. What it puts on a disk stays
// the same; what the version cannot say is an *InexpressibleError naming the field. Contents are not re-encoded: below
// 3.1 a compressed data URL is refused too, because those Ignitions cannot read it. The config is not changed.
//
// The steps from 3.5 to 3.1 and to 2.2 are ign-converter's. It has none for 3.6 to 3.5 and 3.1 to 3.0, and it loses some
// of what it should refuse or keep; both are made good here.
func Down(cfg types.Config, to Version) ([]byte, error) {
	if to.Less(V2_2) || Newest.Less(to) || (to.Major == 2 && to != V2_2) {
		return nil, fmt.Errorf("Ignition spec version %s is not served: use one of %s", to, list(All))
	}
	if err := lacks(cfg, to); err != nil {
		return nil, err
	}
	own, err := clone(cfg)
	if err != nil {
		return nil, err
	}
	converted, err := steps(own, to)
	if err != nil {
		return nil, &InexpressibleError{Field: "spec.config", Version: to, Why: oneLine(err.Error())}
	}
	body, err := Marshal(converted)
	if err != nil {
		return nil, err
	}
	if _, err := Check(body, to); err != nil {
		return nil, &InexpressibleError{Field: "spec.config", Version: to, Why: err.Error()}
	}
	return body, nil
}

// steps goes down one version after the other.
func steps(c6 types.Config, to Version) (any, error) {
	if to == V3_6 {
		return c6, nil
	}
	c6.Ignition.Version = v3_5.MaxVersion.String()
	var c5 v3_5.Config
	if err := convert(c6, &c5); err != nil || to == V3_5 {
		return c5, err
	}
	c4, err := v35tov34.Translate(c5)
	if err != nil {
		return nil, err
	}
	keepAdvertisements(c5, &c4)
	if to == V3_4 {
		return c4, nil
	}
	c3, err := v34tov33.Translate(c4)
	if err != nil || to == V3_3 {
		return c3, err
	}
	c2, err := v33tov32.Translate(c3)
	if err != nil || to == V3_2 {
		return c2, err
	}
	c1, err := v32tov31.Translate(c2)
	if err != nil || to == V3_1 {
		return c1, err
	}
	emptyDropinsToFiles(&c1)
	if to == V2_2 {
		return to22(c1)
	}
	return to30(c1)
}

// keepAdvertisements restores what ign-converter's step from 3.5 to 3.4 drops although 3.4 has it.
func keepAdvertisements(from v3_5.Config, to *v3_4.Config) {
	for i, luks := range from.Storage.Luks {
		for j, tang := range luks.Clevis.Tang {
			to.Storage.Luks[i].Clevis.Tang[j].Advertisement = tang.Advertisement
		}
	}
}

// clone copies a config deeply and takes out settings that say nothing but are not absent, such as an empty
// compression: the converters refuse them as if they were set.
func clone(cfg types.Config) (types.Config, error) {
	var own types.Config
	raw, err := Marshal(cfg)
	if err != nil {
		return own, err
	}
	if err := json.Unmarshal(raw, &own); err != nil {
		return own, fmt.Errorf("copying an Ignition config: %w", err)
	}
	own.Ignition.Version = types.MaxVersion.String()
	eachResource(&own, func(_ string, r *types.Resource, _ resourceKind) {
		if util.NilOrEmpty(r.Compression) {
			r.Compression = nil
		}
		if len(r.HTTPHeaders) == 0 {
			r.HTTPHeaders = nil
		}
	})
	for i := range own.Storage.Filesystems {
		if len(own.Storage.Filesystems[i].MountOptions) == 0 {
			own.Storage.Filesystems[i].MountOptions = nil
		}
	}
	return own, nil
}
