// SPDX-License-Identifier: Apache-2.0

package specver

import (
	"github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/coreos/ignition/v2/config/v3_6/types"
)

// Up reads a config of any 3.x version into the newest types, as Ignition itself does before it applies one, with the
// warnings and the error that Check would give for the version it is written in.
//
// Ignition 2.26 loses tang advertisements of a 3.4 config on this way. An Ignition that knows no 3.5 has no such way and
// heeds them, so they are kept.
func Up(body []byte) (types.Config, []string, error) {
	cfg, rpt, err := v3_6.ParseCompatibleVersion(body)
	warnings, err := findings(rpt, err)
	if err != nil {
		return cfg, warnings, err
	}
	if c4, _, err := v3_4.Parse(body); err == nil { // it is of exactly 3.4
		for i, luks := range c4.Storage.Luks {
			for j, tang := range luks.Clevis.Tang {
				cfg.Storage.Luks[i].Clevis.Tang[j].Advertisement = tang.Advertisement
			}
		}
	}
	return cfg, warnings, nil
}
