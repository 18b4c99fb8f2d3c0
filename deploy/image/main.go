// SPDX-License-Identifier: Apache-2.0

// Command image puts built programs into container images without a container engine: one OCI layout with an index for
// all architectures, and a bill of materials of each image, attached to it and as a file. Nothing in it depends on when,
// where or by whom it is run: the same programs give the same digest.
//
//	image -programs bin/programs -version 1.2.0 -out bin/image
//
// Below -programs there is a folder for each architecture with mcs and mcsnap-agent. Every image has the agents of all
// architectures, because a server hands them to nodes of any. The index's digest is printed.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is nobody's: the number that the manifests in deploy/base run the server as.
const user = "65532:65532"

// bomType is what a bill of materials is in a registry.
const bomType = types.MediaType("application/vnd.cyclonedx+json")

var architectures = []string{"amd64", "arm64"}

func main() {
	programs := flag.String("programs", "", "folder with a folder of programs for each architecture")
	licence := flag.String("licence", "", "file with the licence")
	version := flag.String("version", "unknown", "what the programs say as their version")
	out := flag.String("out", "", "folder for the layout and the bills; it must not exist")
	flag.Parse()
	if *programs == "" || *licence == "" || *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	digest, err := build(*programs, *licence, *version, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}

func build(programs, licence, version, out string) (v1.Hash, error) {
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		return v1.Hash{}, fmt.Errorf("%s is there already; remove it first", out)
	}
	made, err := date()
	if err != nil {
		return v1.Hash{}, err
	}
	agents := []file{{licence, "LICENSE", 0o644}}
	for _, arch := range architectures {
		agents = append(agents, file{filepath.Join(programs, arch, "mcsnap-agent"), "agents/" + arch + "/mcsnap-agent", 0o755})
	}
	shared, err := layer(agents, made)
	if err != nil {
		return v1.Hash{}, err
	}
	at, err := layout.Write(filepath.Join(out, "oci"), empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range architectures {
		program := filepath.Join(programs, arch, "mcs")
		own, err := layer([]file{{program, "mcs", 0o755}}, made)
		if err != nil {
			return v1.Hash{}, err
		}
		image, err := imageOf(arch, version, made, shared, own)
		if err != nil {
			return v1.Hash{}, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
		bom, err := billOf(arch, version, made, append([]file{{program, "mcs", 0}}, agents[1:]...))
		if err != nil {
			return v1.Hash{}, err
		}
		if err := os.WriteFile(filepath.Join(out, "mcs-"+arch+".cdx.json"), bom, 0o644); err != nil {
			return v1.Hash{}, err
		}
		if err := attach(at, image, bom); err != nil {
			return v1.Hash{}, err
		}
	}
	name := map[string]string{"org.opencontainers.image.ref.name": version}
	if err := at.AppendIndex(index, layout.WithAnnotations(name)); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

// date is SOURCE_DATE_EPOCH, so that a build does not depend on when it is made.
func date() (time.Time, error) {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w; set it to the seconds of the last commit, as make image does", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func imageOf(arch, version string, made time.Time, layers ...v1.Layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, l := range layers {
		var err error
		image, err = mutate.Append(image, mutate.Addendum{
			Layer: l, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: made}, CreatedBy: "deploy/image"},
		})
		if err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: made}
	config.Config = v1.Config{
		Entrypoint: []string{"/mcs"}, User: user, WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title": "mcs", "org.opencontainers.image.version": version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

// attach puts a bill of materials beside its image, as registries' referrers do.
func attach(at layout.Path, image v1.Image, bom []byte) error {
	subject, err := partial.Descriptor(image)
	if err != nil {
		return err
	}
	artifact, err := mutate.AppendLayers(
		mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), bomType), static.NewLayer(bom, bomType))
	if err != nil {
		return err
	}
	return at.AppendImage(mutate.Subject(artifact, *subject).(v1.Image))
}

// indented is JSON for people, with one line break at its end.
func indented(value any) ([]byte, error) {
	text, err := json.MarshalIndent(value, "", "  ")
	return append(text, '\n'), err
}
