// SPDX-License-Identifier: Apache-2.0

package specver

import "github.com/coreos/ignition/v2/config/v3_6/types"

// resourceKind tells the places apart where a config names a source.
type resourceKind int

const (
	fileResource   resourceKind = iota // contents of a file, or an appended part of it
	configResource                     // another Ignition config
	otherResource                      // certificates, key files
)

// eachResource visits every source of a config, with its field's name.
func eachResource(cfg *types.Config, visit func(field string, r *types.Resource, kind resourceKind)) {
	for i := range cfg.Ignition.Config.Merge {
		visit(at("ignition.config.merge.%d", i), &cfg.Ignition.Config.Merge[i], configResource)
	}
	visit("ignition.config.replace", &cfg.Ignition.Config.Replace, configResource)
	for i := range cfg.Ignition.Security.TLS.CertificateAuthorities {
		ca := &cfg.Ignition.Security.TLS.CertificateAuthorities[i]
		visit(at("ignition.security.tls.certificateAuthorities.%d", i), ca, otherResource)
	}
	for i := range cfg.Storage.Luks {
		visit(at("storage.luks.%d.keyFile", i), &cfg.Storage.Luks[i].KeyFile, otherResource)
	}
	for i := range cfg.Storage.Files {
		f := &cfg.Storage.Files[i]
		visit(at("storage.files.%d.contents", i), &f.Contents, fileResource)
		for j := range f.Append {
			visit(at("storage.files.%d.append.%d", i, j), &f.Append[j], fileResource)
		}
	}
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
