// SPDX-License-Identifier: Apache-2.0

package specver

import (
	"fmt"
	"strings"

	"github.com/coreos/ignition/v2/config/util"
	"github.com/coreos/ignition/v2/config/v3_6/types"
)

// InexpressibleError says that a config uses what the asked version has no words for. The config itself is fine.
type InexpressibleError struct {
	Field   string  // where, such as "storage.luks.0.discard"
	Version Version // the version that was asked for
	Why     string  // what that version lacks
}

func (e *InexpressibleError) Error() string {
	return fmt.Sprintf("%s: Ignition spec %s cannot express it (%s): boot an Ignition that reads a newer spec, or change the config",
		e.Field, e.Version, e.Why)
}

// finder reports each use of a feature as a field.
type finder func(cfg types.Config, report func(field, why string))

// features lists what each version brought, from the schemas of both neighbours. A config that uses one cannot be
// written in a version below. The converters would drop some of these silently (partitions' wipePartitionEntry), and
// name no field for the others.
var features = []struct {
	since Version
	find  finder
}{
	{V3_6, findModesAndPins},
	{V3_5, findCex},
	{V3_4, findTangLuksAndArn},
	{V3_3, findKargsAndNone},
	{V3_2, findLuksAndRemovals},
	{V3_1, findHTTP},
	{V3_0, find2x},
}

// lacks finds the first feature that a config uses and version to does not have.
func lacks(cfg types.Config, to Version) error {
	var first *InexpressibleError
	report := func(field, why string) {
		if first == nil {
			first = &InexpressibleError{Field: field, Version: to, Why: why}
		}
	}
	for _, f := range features {
		if to.Less(f.since) {
			f.find(cfg, report)
		}
	}
	if to == V3_0 {
		findHardLinks(cfg, report)
	}
	if first != nil {
		return first
	}
	return nil
}

func at(format string, args ...any) string { return fmt.Sprintf(format, args...) }

func findModesAndPins(cfg types.Config, report func(field, why string)) {
	const bits = "setuid, setgid and sticky bits came with 3.6.0"
	for i, f := range cfg.Storage.Files {
		if f.Mode != nil && *f.Mode&0o7000 != 0 {
			report(at("storage.files.%d.mode", i), bits)
		}
	}
	for i, d := range cfg.Storage.Directories {
		if d.Mode != nil && *d.Mode&0o7000 != 0 {
			report(at("storage.directories.%d.mode", i), bits)
		}
	}
	for i, l := range cfg.Storage.Luks {
		switch pin := l.Clevis.Custom.Pin; {
		case pin == nil, *pin == "", *pin == "tpm2", *pin == "tang", *pin == "sss":
		default:
			report(at("storage.luks.%d.clevis.custom.pin", i), "pins other than tpm2, tang and sss came with 3.6.0")
		}
	}
}

func findCex(cfg types.Config, report func(field, why string)) {
	for i, l := range cfg.Storage.Luks {
		if util.IsTrue(l.Cex.Enabled) {
			report(at("storage.luks.%d.cex", i), "cex came with 3.5.0")
		}
	}
}

func findTangLuksAndArn(cfg types.Config, report func(field, why string)) {
	for i, l := range cfg.Storage.Luks {
		if util.IsTrue(l.Discard) {
			report(at("storage.luks.%d.discard", i), "discard came with 3.4.0")
		}
		if len(l.OpenOptions) > 0 {
			report(at("storage.luks.%d.openOptions", i), "openOptions came with 3.4.0")
		}
		for j, t := range l.Clevis.Tang {
			if util.NotEmpty(t.Advertisement) {
				report(at("storage.luks.%d.clevis.tang.%d.advertisement", i, j), "tang advertisements came with 3.4.0")
			}
		}
	}
	eachResource(&cfg, func(field string, r *types.Resource, _ resourceKind) {
		if strings.HasPrefix(value(r.Source), "arn:") {
			report(field+".source", "arn: sources came with 3.4.0")
		}
	})
}

func findKargsAndNone(cfg types.Config, report func(field, why string)) {
	if len(cfg.KernelArguments.ShouldExist) > 0 {
		report("kernelArguments.shouldExist", "kernel arguments came with 3.3.0")
	}
	if len(cfg.KernelArguments.ShouldNotExist) > 0 {
		report("kernelArguments.shouldNotExist", "kernel arguments came with 3.3.0, and a MachineConfig can only add them")
	}
	for i, f := range cfg.Storage.Filesystems {
		if value(f.Format) == "none" {
			report(at("storage.filesystems.%d.format", i), "the format none came with 3.3.0")
		}
	}
}

func findLuksAndRemovals(cfg types.Config, report func(field, why string)) {
	if len(cfg.Storage.Luks) > 0 {
		report("storage.luks", "LUKS volumes came with 3.2.0")
	}
	for i, u := range cfg.Passwd.Users {
		if util.IsFalse(u.ShouldExist) {
			report(at("passwd.users.%d.shouldExist", i), "removing users came with 3.2.0")
		}
	}
	for i, g := range cfg.Passwd.Groups {
		if util.IsFalse(g.ShouldExist) {
			report(at("passwd.groups.%d.shouldExist", i), "removing groups came with 3.2.0")
		}
	}
	for i, d := range cfg.Storage.Disks {
		for j, p := range d.Partitions {
			if util.IsTrue(p.Resize) {
				report(at("storage.disks.%d.partitions.%d.resize", i, j), "resizing partitions came with 3.2.0")
			}
		}
	}
	eachResource(&cfg, func(field string, r *types.Resource, _ resourceKind) {
		if strings.HasPrefix(value(r.Source), "gs:") {
			report(field+".source", "gs: sources came with 3.2.0")
		}
	})
}

func findHTTP(cfg types.Config, report func(field, why string)) {
	p := cfg.Ignition.Proxy
	if value(p.HTTPProxy) != "" || value(p.HTTPSProxy) != "" || len(p.NoProxy) > 0 {
		report("ignition.proxy", "proxies came with 3.1.0")
	}
	eachResource(&cfg, func(field string, r *types.Resource, kind resourceKind) {
		if len(r.HTTPHeaders) > 0 {
			report(field+".httpHeaders", "HTTP headers came with 3.1.0")
		}
		if value(r.Compression) != "" && (kind != fileResource || strings.HasPrefix(value(r.Source), "data:")) {
			report(field+".compression", "compressed configs, certificates and data URLs came with 3.1.0")
		}
		if strings.HasPrefix(value(r.Verification.Hash), "sha256-") {
			report(field+".verification.hash", "sha256 came with 3.1.0, before it only sha512 is known")
		}
	})
	for i, f := range cfg.Storage.Filesystems {
		if len(f.MountOptions) > 0 {
			report(at("storage.filesystems.%d.mountOptions", i), "mount options came with 3.1.0")
		}
	}
}
