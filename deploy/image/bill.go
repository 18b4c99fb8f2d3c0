// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// billOf tells what is in an image: its programs, and the modules that each of them was built of, as the programs
// themselves say.
func billOf(arch, version string, made time.Time, programs []file) ([]byte, error) {
	bom := cdx.NewBOM()
	image := cdx.Component{BOMRef: "mcs-" + arch, Type: cdx.ComponentTypeContainer, Name: "mcs", Version: version}
	bom.Metadata = &cdx.Metadata{Timestamp: made.Format(time.RFC3339), Component: &image}
	modules := map[string]cdx.Component{}
	needs := map[string][]string{}
	components := []cdx.Component{}
	for _, p := range programs {
		text, err := os.ReadFile(p.from)
		if err != nil {
			return nil, err
		}
		info, err := buildinfo.ReadFile(p.from)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; build it with Go", p.from, err)
		}
		sum := sha256.Sum256(text)
		components = append(components, cdx.Component{
			BOMRef: "/" + p.to, Type: cdx.ComponentTypeApplication, Name: "/" + p.to, Version: version,
			Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
			Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		})
		needs["mcs-"+arch] = append(needs["mcs-"+arch], "/"+p.to)
		std := &debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}
		for _, m := range append([]*debug.Module{std}, info.Deps...) {
			if m.Replace != nil {
				m = m.Replace
			}
			ref := "pkg:golang/" + m.Path + "@" + m.Version
			modules[ref] = cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: ref}
			needs["/"+p.to] = append(needs["/"+p.to], ref)
		}
	}
	for _, ref := range sorted(modules) {
		components = append(components, modules[ref])
	}
	dependencies := []cdx.Dependency{}
	for _, ref := range sorted(needs) {
		dependencies = append(dependencies, cdx.Dependency{Ref: ref, Dependencies: new(needs[ref])})
	}
	bom.Components, bom.Dependencies = &components, &dependencies
	// A number for this bill and no other, which is the same when it is made again.
	text, err := indented(bom)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // version 8 of RFC 9562: of one's own making
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	return indented(bom)
}

func sorted[T any](of map[string]T) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
