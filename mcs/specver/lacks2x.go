// SPDX-License-Identifier: Apache-2.0

package specver

import (
	"path"
	"slices"
	"strings"

	"github.com/coreos/ignition/v2/config/util"
	"github.com/coreos/ignition/v2/config/v3_6/types"
)

// find2x finds what spec 3.0 can say and 2.2 cannot. Several of these ign-converter drops without a word, or turns into
// a config that Ignition 0.x cannot apply.
func find2x(cfg types.Config, report func(field, why string)) {
	for i, d := range cfg.Storage.Disks {
		for j, p := range d.Partitions {
			field := at("storage.disks.%d.partitions.%d", i, j)
			switch {
			case p.SizeMiB != nil:
				report(field+".sizeMiB", "2.x counts partitions in sectors")
			case p.StartMiB != nil:
				report(field+".startMiB", "2.x counts partitions in sectors")
			case util.IsTrue(p.WipePartitionEntry):
				report(field+".wipePartitionEntry", "2.x cannot replace one partition")
			case util.IsFalse(p.ShouldExist):
				report(field+".shouldExist", "2.x cannot remove a partition")
			}
		}
	}
	find2xModes(cfg, report)
	find2xMounts(cfg, report)
}

// find2xModes finds nodes without a mode where a 2.x Ignition would have to be given one: it takes none for 0, and 3.x
// keeps the mode of what exists, which cannot be known here.
func find2xModes(cfg types.Config, report func(field, why string)) {
	for i, f := range cfg.Storage.Files {
		if f.Mode == nil && f.Contents.Source == nil {
			report(at("storage.files.%d.mode", i), "2.x cannot keep the mode of a file that exists: set a mode")
		}
	}
	for i, d := range cfg.Storage.Directories {
		if d.Mode == nil {
			report(at("storage.directories.%d.mode", i), "2.x cannot keep the mode of a directory that exists: set a mode")
		}
	}
	find2xParents(cfg.Storage.Directories, report)
}

// standing are folders that an image has, so that no Ignition makes them on the way to another.
var standing = []string{"/", "/boot", "/etc", "/home", "/opt", "/root", "/run", "/srv", "/usr", "/usr/local", "/var", "/var/lib", "/var/log"}

// find2xParents finds directories whose parents would get their mode and owner: a 2.x Ignition gives both to every folder
// it makes on the way, and a private or open one may not hand that on.
func find2xParents(directories []types.Directory, report func(field, why string)) {
	made := slices.Clone(standing)
	for _, d := range directories {
		made = append(made, d.Path)
	}
	for i, d := range directories {
		ordinary := value(d.Mode) == 0o755 && d.User == types.NodeUser{} && d.Group == types.NodeGroup{}
		if parent := path.Dir(d.Path); !ordinary && !slices.Contains(made, parent) {
			report(at("storage.directories.%d.mode", i), "2.x gives folders it makes above it the same mode and owner: list "+parent+" too")
		}
	}
}

// find2xMounts finds filesystems that the conversion would pair with the wrong files: 2.x addresses a file by its
// filesystem and the path within, and ign-converter takes any common prefix of letters for a mount point.
func find2xMounts(cfg types.Config, report func(field, why string)) {
	for i, fs := range cfg.Storage.Filesystems {
		mount := value(fs.Path)
		if mount == "" {
			continue
		}
		if mount == "/" {
			report(at("storage.filesystems.%d.path", i), "2.x knows the root filesystem by name only")
		}
		check := func(field string, node types.Node) {
			if strings.HasPrefix(node.Path, mount) && !strings.HasPrefix(node.Path, mount+"/") {
				report(field+".path", "it cannot be told apart from the mount point "+mount+" in 2.x")
			}
		}
		for j, f := range cfg.Storage.Files {
			check(at("storage.files.%d", j), f.Node)
		}
		for j, d := range cfg.Storage.Directories {
			check(at("storage.directories.%d", j), d.Node)
		}
		for j, l := range cfg.Storage.Links {
			check(at("storage.links.%d", j), l.Node)
		}
	}
}
