// SPDX-License-Identifier: Apache-2.0

package specver

import (
	"path"
	"slices"

	v3_0 "github.com/coreos/ignition/v2/config/v3_0/types"
	v3_1 "github.com/coreos/ignition/v2/config/v3_1/types"
	"github.com/coreos/ignition/v2/config/v3_6/types"
)

// to30 is the step from 3.1 to 3.0: the same shape less what findHTTP refuses.
func to30(c1 v3_1.Config) (c0 v3_0.Config, err error) {
	c1.Ignition.Version = v3_0.MaxVersion.String()
	return c0, convert(c1, &c0)
}

// emptyDropinsToFiles moves drop-ins that are there but empty to where any Ignition writes them. The Ignitions that read
// nothing above 3.0 or 2.2 do not write them, though an empty drop-in hides one of the same name in the image.
func emptyDropinsToFiles(c1 *v3_1.Config) {
	for i := range c1.Systemd.Units {
		unit := &c1.Systemd.Units[i]
		unit.Dropins = slices.DeleteFunc(unit.Dropins, func(dropin v3_1.Dropin) bool {
			if dropin.Contents == nil || *dropin.Contents != "" {
				return false
			}
			overwrite, mode, nothing := true, 0o644, emptyData
			c1.Storage.Files = append(c1.Storage.Files, v3_1.File{
				Node:          v3_1.Node{Path: "/etc/systemd/system/" + unit.Name + ".d/" + dropin.Name, Overwrite: &overwrite},
				FileEmbedded1: v3_1.FileEmbedded1{Mode: &mode, Contents: v3_1.Resource{Source: &nothing}},
			})
			return true
		})
	}
}

// findHardLinks finds hard links that Ignition 2.0 to 2.2 make before what they link to: these go by the depth of paths,
// and fail the boot. Those for 2.2 make links last, as those for 3.1 and above do.
func findHardLinks(cfg types.Config, report func(field, why string)) {
	for i, l := range cfg.Storage.Links {
		if !value(l.Hard) {
			continue
		}
		target := path.Clean(value(l.Target))
		made := slices.ContainsFunc(cfg.Storage.Files, func(f types.File) bool { return f.Path == target })
		if made && depth(target) >= depth(l.Path) {
			report(at("storage.links.%d.target", i), "Ignition makes this hard link before the file, which is no higher up")
		}
	}
}

// depth is how many folders a clean, absolute path goes down.
func depth(p string) (n int) {
	for ; p != "/" && p != "."; p = path.Dir(p) {
		n++
	}
	return n
}
