// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coreos/ignition/v2/config/util"
	"github.com/coreos/ignition/v2/config/v3_6/types"

	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// rendered is the config on its way from what was rendered to what is served.
type rendered struct {
	snapshot *snapshot.Snapshot
	own, to  specver.Version
	cfg      types.Config
	warnings []string
	kargs    []string // kernel arguments that the asked version cannot carry; the encapsulated MachineConfig does
}

// render reads the snapshot's config and prepares it for version to: configs inside it resolved, kernel arguments moved,
// contents re-encoded. Nothing that lands on a disk changes.
func render(s *snapshot.Snapshot, own, to specver.Version) (*rendered, error) {
	cfg, warnings, err := specver.Up(s.IgnitionConfig())
	if err != nil {
		return nil, &InvalidConfigError{Field: "spec.config", Reason: err.Error()}
	}
	if cfg, err = resolve(cfg); err != nil {
		return nil, err
	}
	r := &rendered{snapshot: s, own: own, to: to, cfg: cfg, warnings: warnings}
	if to.Less(specver.V3_3) { // arguments to take away have no other place, and stay for Down to refuse
		for _, arg := range cfg.KernelArguments.ShouldExist {
			r.kargs = append(r.kargs, string(arg))
		}
		r.cfg.KernelArguments.ShouldExist = nil
	}
	return r, r.prepare()
}

// prepare makes the config fit for the asked version in all that Down leaves to its caller.
func (r *rendered) prepare() error {
	for i := range r.cfg.Ignition.Security.TLS.CertificateAuthorities {
		at := fmt.Sprintf("ignition.security.tls.certificateAuthorities.%d", i)
		if err := reencode(at, &r.cfg.Ignition.Security.TLS.CertificateAuthorities[i], r.to); err != nil {
			return err
		}
	}
	for i := range r.cfg.Storage.Files {
		f := &r.cfg.Storage.Files[i]
		at := fmt.Sprintf("storage.files.%d (%s)", i, f.Path)
		if f.Contents.Source != nil && f.Mode == nil {
			f.Mode = util.IntToPtr(0o644) // what every 3.x Ignition takes; a 2.x one would take 0
		}
		if err := reencode(at+".contents", &f.Contents, r.to); err != nil {
			return err
		}
		for j := range f.Append {
			if err := reencode(fmt.Sprintf("%s.append.%d", at, j), &f.Append[j], r.to); err != nil {
				return err
			}
		}
	}
	return nil
}

// reencode writes the contents of a data URL in the shortest way the asked version can read. A verification hash is
// checked, because a node would stop at a wrong one, and becomes sha512 where sha256 is not known. Contents elsewhere
// are left as they are.
func reencode(field string, res *types.Resource, to specver.Version) error {
	if res.Source == nil {
		return nil
	}
	data, err := open(field, res)
	if err != nil || data == nil {
		return err
	}
	gzipKnown := !to.Less(specver.V3_1)
	if !gzipKnown && strings.HasPrefix(value(res.Verification.Hash), "sha256-") {
		res.Verification.Hash = util.StrToPtr(contents.Verification(data))
	}
	was := encoding{*res.Source, value(res.Compression)}
	best := encode(data, gzipKnown)
	if was.source != "" && (gzipKnown || was.compression == "") && was.size() <= best.size() {
		best = was
	}
	best.put(res)
	return nil
}

// open reads the contents of a data URL and checks their verification hash. It returns nil for contents elsewhere.
func open(field string, res *types.Resource) ([]byte, error) {
	data, err := contents.Decode(value(res.Source), value(res.Compression), contents.MaxInflated)
	if errors.Is(err, contents.ErrRemote) {
		return nil, nil
	}
	if err != nil {
		return nil, &InvalidConfigError{Field: "spec.config." + field, Reason: err.Error()}
	}
	if err := verify(data, value(res.Verification.Hash)); err != nil {
		return nil, &InvalidConfigError{Field: "spec.config." + field + ".verification.hash", Reason: err.Error()}
	}
	if data == nil {
		data = []byte{}
	}
	return data, nil
}

// kernelArguments are the MachineConfig's own and those that moved there, each once.
func (r *rendered) kernelArguments(own []string) []string {
	args := slices.Clone(own)
	for _, arg := range r.kargs {
		if !slices.Contains(args, arg) {
			args = append(args, arg)
		}
	}
	return args
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
