// SPDX-License-Identifier: Apache-2.0

package specver

import (
	"github.com/coreos/ign-converter/translate/v31tov22"
	v2_2 "github.com/coreos/ignition/config/v2_2/types"
	v3_1 "github.com/coreos/ignition/v2/config/v3_1/types"
)

// emptyData is a data URL of no bytes.
const emptyData = "data:,"

// to22 is the step from 3.1 to 2.2: ign-converter's, made to hold on a real 0.x Ignition, whose rules for files differ:
//
//   - no mode means mode 0, so the mode is always written (find2xModes refuses where it cannot be known);
//   - overwrite: false refuses a file that exists even when it is to be appended to, so an appended part must say
//     nothing about overwriting;
//   - there is no file entry without contents: what makes 3.x create a file or leave the one that exists becomes an
//     append of nothing, which does the same. The converter drops it.
func to22(c1 v3_1.Config) (v2_2.Config, error) {
	for i := range c1.Storage.Files {
		f := &c1.Storage.Files[i]
		if f.Mode == nil {
			mode := 0o644
			f.Mode = &mode
		}
		if f.Contents.Source == nil && len(f.Append) == 0 {
			nothing := emptyData
			f.Append = []v3_1.Resource{{Source: &nothing}}
		}
	}
	c22, err := v31tov22.Translate(c1)
	if err != nil {
		return c22, err
	}
	for i := range c22.Storage.Files {
		if f := &c22.Storage.Files[i]; f.Append {
			f.Overwrite = nil
		}
	}
	return c22, nil
}
