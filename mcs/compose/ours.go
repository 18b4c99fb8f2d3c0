// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/coreos/ignition/v2/config/util"
	"github.com/coreos/ignition/v2/config/v3_6/types"

	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
	"github.com/mcsnap/mcsnap/systemd"
)

// Where the files land that are added to a rendered config. Those below /etc/machine-config-daemon and the encapsulated
// MachineConfig are OpenShift's contract.
const (
	AnnotationsPath  = "/etc/machine-config-daemon/node-annotations.json"
	EncapsulatedPath = "/etc/ignition-machine-config-encapsulated.json"
	ContentPath      = "/etc/mcs-machine-config-content.json"
	KubeconfigPath   = "/etc/kubernetes/kubeconfig"
	AgentConfigPath  = "/etc/mcsnap/agent.yaml"
	unitFolder       = "/etc/systemd/system/"
)

// Why a path of the rendered config has other content on the node.
const (
	reasonCredentials = "credentials"
	reasonMcsnap      = "mcsnap"
)

// addOurs adds what is not rendered and returns the snapshot as it is served, with its overlays.
func (r *rendered) addOurs(in Inputs) (*snapshot.Snapshot, error) {
	var overlays []snapshot.Overlay
	overlay := func(at, reason string, data []byte) {
		sum := sha256.Sum256(data)
		overlays = append(overlays, snapshot.Overlay{Path: at, Reason: reason, SHA256: hex.EncodeToString(sum[:])})
	}
	machineConfigs, err := r.machineConfigs(in.CompatContentFile)
	if err != nil {
		return nil, err
	}
	files := append([]File{
		{Path: AnnotationsPath, Contents: r.annotations(), Mode: 0o644},
		{Path: KubeconfigPath, Contents: in.Kubeconfig, Mode: 0o600, Reason: reasonCredentials},
		{Path: AgentConfigPath, Contents: in.AgentConfig, Mode: 0o600},
	}, machineConfigs...)
	for _, f := range in.Files {
		if f.Reason == "" {
			f.Reason = reasonMcsnap
		}
		files = append(files, f)
	}
	added := map[string]bool{snapshot.Path: true}
	for _, f := range files {
		if len(f.Contents) == 0 {
			continue
		}
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path {
			return nil, fmt.Errorf("added file %q: the path is not absolute and clean: give it as /etc/…", f.Path)
		}
		if added[f.Path] {
			return nil, fmt.Errorf("added file %s: two of them have this path: leave one out", f.Path)
		}
		added[f.Path] = true
		was, err := r.take(f.Path)
		if err != nil {
			return nil, err
		}
		entry := file(f.Path, f.Mode)
		encode(f.Contents, !r.to.Less(specver.V3_1)).put(&entry.Contents)
		switch {
		case f.Reason != "":
			overlay(f.Path, f.Reason, f.Contents)
			if was != nil && f.Reason != reasonCredentials { // newer content, the same file
				entry.User, entry.Group = was.User, was.Group
				if was.Mode != nil {
					entry.Mode = was.Mode
				}
			}
		case was != nil:
			overlay(f.Path, reasonMcsnap, f.Contents)
		}
		r.cfg.Storage.Files = append(r.cfg.Storage.Files, entry)
	}
	if err := r.addAgents(in.Agents); err != nil {
		return nil, err
	}
	if err := r.refuseReserved(); err != nil {
		return nil, err
	}
	return r.addSnapshot(overlays)
}

// addSnapshot puts the snapshot into the config, with a hash so that what arrives broken is noticed by Ignition itself.
func (r *rendered) addSnapshot(overlays []snapshot.Overlay) (*snapshot.Snapshot, error) {
	if _, err := r.take(snapshot.Path); err != nil {
		return nil, err
	}
	sealed := r.snapshot.WithOverlays(overlays)
	var e encoding
	e.source, e.compression = snapshot.EncodeFile(sealed, r.to.String())
	entry := file(snapshot.Path, 0o600)
	e.put(&entry.Contents)
	entry.Contents.Verification.Hash = util.StrToPtr(contents.Verification(sealed.Bytes()))
	r.cfg.Storage.Files = append(r.cfg.Storage.Files, entry)
	return sealed, nil
}

// addAgents adds the first-boot unit and, unless the OS image brings it, the agent as a file of this server, verified by
// its hash. With agents for several architectures each has a unit that runs only there.
func (r *rendered) addAgents(agents []Agent) error {
	if len(agents) == 0 {
		r.addUnit(systemd.FirstbootName, "")
		return nil
	}
	for i, a := range agents {
		if slices.ContainsFunc(agents[:i], func(b Agent) bool { return a.Arch == b.Arch }) {
			return fmt.Errorf("agent for %s: there are two of them: leave one out", a.Arch)
		}
		if _, err := hex.DecodeString(a.SHA512); err != nil || len(a.SHA512) != 128 {
			return fmt.Errorf("agent for %s: its sha512 is not 128 hexadecimal digits: give the digest of the binary", a.Arch)
		}
		name, text, at := systemd.FirstbootName, systemd.Firstboot(), systemd.AgentPath
		if len(agents) > 1 {
			var err error
			if name, text, at, err = systemd.FirstbootFor(a.Arch); err != nil {
				return err
			}
		}
		for _, p := range []string{at, unitFolder + name} {
			if _, err := r.take(p); err != nil {
				return err
			}
		}
		entry := file(at, 0o755)
		e := encoding{source: a.URL}
		if !r.to.Less(specver.V3_1) {
			e = encoding{a.URL + ".gz", contents.Gzip}
		}
		e.put(&entry.Contents)
		entry.Contents.Verification.Hash = util.StrToPtr("sha512-" + strings.ToLower(a.SHA512))
		r.cfg.Storage.Files = append(r.cfg.Storage.Files, entry)
		r.addUnit(name, text)
	}
	return nil
}

// addUnit enables a unit, replacing one of the same name. Without text it is the OS image's own.
func (r *rendered) addUnit(name, text string) {
	unit := types.Unit{Name: name, Enabled: util.BoolToPtr(true)}
	if text != "" {
		unit.Contents = &text
	}
	units := slices.DeleteFunc(slices.Clone(r.cfg.Systemd.Units), func(u types.Unit) bool { return u.Name == name })
	r.cfg.Systemd.Units = append(units, unit)
}

// take makes room for a file of ours: a file that the config has there is taken out and returned; anything else there,
// above it or below it is refused, because Ignition could not write ours.
func (r *rendered) take(at string) (*types.File, error) {
	below := func(p string) bool { return strings.HasPrefix(p, at+"/") }
	above := func(p string) bool { return strings.HasPrefix(at, p+"/") }
	for _, d := range r.cfg.Storage.Directories {
		if d.Path == at || below(d.Path) {
			return nil, &snapshot.PathTakenError{Path: at, As: "directory"}
		}
	}
	for _, l := range r.cfg.Storage.Links {
		switch {
		case l.Path == at:
			return nil, &snapshot.PathTakenError{Path: at, As: "link"}
		case below(l.Path):
			return nil, &snapshot.PathTakenError{Path: at, As: "directory"}
		case above(l.Path):
			return nil, &snapshot.PathTakenError{Path: l.Path, As: "link above " + at}
		}
	}
	var was *types.File
	kept := make([]types.File, 0, len(r.cfg.Storage.Files)+1)
	for _, f := range r.cfg.Storage.Files {
		switch {
		case f.Path == at:
			was = &f
			continue
		case below(f.Path):
			return nil, &snapshot.PathTakenError{Path: at, As: "directory"}
		case above(f.Path):
			return nil, &snapshot.PathTakenError{Path: f.Path, As: "file above " + at}
		}
		kept = append(kept, f)
	}
	r.cfg.Storage.Files = kept
	return was, nil
}

// file is an entry of ours: it replaces what an image may have at its path.
func file(at string, mode int) types.File {
	if mode == 0 {
		mode = 0o644
	}
	return types.File{
		Node:          types.Node{Path: at, Overwrite: util.BoolToPtr(true)},
		FileEmbedded1: types.FileEmbedded1{Mode: &mode},
	}
}
