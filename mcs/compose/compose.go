// SPDX-License-Identifier: Apache-2.0

// Package compose makes what a booting node is answered: the rendered Ignition config of one snapshot, plus the files
// that make the node an OpenShift node and carry the snapshot with it, written for one Ignition spec version.
//
// It is a pure function of its inputs: no clock, no disk, no network, no state. The same inputs give the same bytes on
// every server. It is not a server and does not choose which config a pool gets.
package compose

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// Inputs is all that a body depends on.
type Inputs struct {
	// Snapshot is the rendered config. Overlays it may name are replaced by those of this body.
	Snapshot *snapshot.Snapshot

	// Kubeconfig is written to /etc/kubernetes/kubeconfig, mode 0600. Nil adds no credentials.
	Kubeconfig []byte

	// Files are served with newer content than was rendered, or on top of it. Each becomes an overlay of the snapshot.
	Files []File

	// Agents are the first-boot agents by architecture. Empty leaves the agent to the OS image: only its unit is enabled.
	Agents []Agent

	// AgentConfig is written to /etc/mcsnap/agent.yaml. Nil adds none.
	AgentConfig []byte

	// CompatContentFile adds /etc/mcs-machine-config-content.json for tools that read OpenShift's copy of the config.
	CompatContentFile bool
}

// File is a file that is not part of the rendered config, such as a certificate authority of the ControllerConfig.
type File struct {
	Path     string // absolute and clean
	Contents []byte // empty: the file is left out
	Mode     int    // permission bits; 0 means 0644. A file the rendered config has keeps its mode and owner
	Reason   string // where the content comes from, in one word, for the overlay list
}

// Agent is one first-boot agent binary that the server hands out.
type Agent struct {
	Arch   string // Go's name, such as amd64
	URL    string // where the binary is; with ".gz" appended, where it is as gzip
	SHA512 string // of the binary, 128 hexadecimal digits
}

// Body is what is served for one config and one spec version. It is immutable once made.
type Body struct {
	Version specver.Version
	JSON    []byte // the Ignition config
	Gzip    []byte // the same as a gzip stream, for stubs that set compression: gzip

	ETag           string // strong, quoted, of JSON
	ReprDigest     string // RFC 9530, of JSON
	GzipETag       string // of Gzip
	GzipReprDigest string // of Gzip

	Digest       snapshot.Digest // of the snapshot inside
	RenderedName string
	Warnings     []string // Ignition's own about the rendered config, one line each, for a log
}

// InvalidConfigError says that a rendered config cannot be served in any version until somebody mends it.
type InvalidConfigError struct {
	Config string // the rendered config's name
	Field  string // within the MachineConfig, such as spec.config.storage.files.3
	Reason string // the problem; never the contents of a file
}

func (e *InvalidConfigError) Error() string {
	return fmt.Sprintf("%s: %s: %s: mend the MachineConfig it was rendered from", e.Config, e.Field, e.Reason)
}

// Own is the spec version that a snapshot's config was rendered in: the newest it is served in.
func Own(s *snapshot.Snapshot) (specver.Version, error) {
	own, err := specver.Of(s.IgnitionConfig())
	if err != nil {
		return own, &InvalidConfigError{Config: s.Name(), Field: "spec.config", Reason: err.Error()}
	}
	if own.Major < 3 {
		return own, &InvalidConfigError{Config: s.Name(), Field: "spec.config.ignition.version",
			Reason: fmt.Sprintf("configs rendered in spec %s are not served: render them in 3.x", own)}
	}
	return own, nil
}

// Compose makes the body for spec version v, which must not be newer than the config's own. Errors are
// *InvalidConfigError (mend the config), *specver.InexpressibleError (this version cannot carry this config, others may)
// or *snapshot.PathTakenError (the config uses a path of ours for something else), or say in one line what input is
// wrong. None quotes the contents of a file.
func Compose(in Inputs, v specver.Version) (*Body, error) {
	own, err := Own(in.Snapshot)
	if err != nil {
		return nil, err
	}
	if own.Less(v) {
		return nil, fmt.Errorf("%s: rendered in Ignition spec %s and asked for in %s: a config is never converted up", in.Snapshot.Name(), own, v)
	}
	name := in.Snapshot.Name()
	r, err := render(in.Snapshot, own, v)
	if err != nil {
		return nil, inConfig(name, err)
	}
	sealed, err := r.addOurs(in)
	if err != nil {
		return nil, inConfig(name, err)
	}
	body, err := specver.Down(r.cfg, v)
	if err != nil {
		return nil, inConfig(name, err)
	}
	if err := selfCheck(body, sealed); err != nil {
		return nil, inConfig(name, err)
	}
	compressed := contents.Compress(body)
	b := &Body{Version: v, JSON: body, Gzip: compressed, Digest: sealed.Digest(), RenderedName: name, Warnings: r.warnings}
	b.ETag, b.ReprDigest = validators(body)
	b.GzipETag, b.GzipReprDigest = validators(compressed)
	return b, nil
}

// inConfig says which rendered config an error is about, keeping its type.
func inConfig(name string, err error) error {
	if invalid, ok := err.(*InvalidConfigError); ok {
		invalid.Config = name
		return invalid
	}
	return fmt.Errorf("%s: %w", name, err)
}

// selfCheck reads a body the way a node will and takes the snapshot out again: a server that would hand out something
// else than it sealed must not hand out anything (field case 78).
func selfCheck(body []byte, sealed *snapshot.Snapshot) error {
	inside, err := snapshot.Extract(body)
	switch {
	case err != nil:
		return fmt.Errorf("self-check of the composed body: %w", err)
	case inside.Digest() != sealed.Digest() || !bytes.Equal(inside.Bytes(), sealed.Bytes()):
		return fmt.Errorf("self-check of the composed body: the snapshot inside has digest %s and not %s, or other bytes; please report this",
			inside.Digest(), sealed.Digest())
	}
	return nil
}

// validators are a strong ETag (RFC 9110) and a Repr-Digest (RFC 9530) of what is served.
func validators(served []byte) (etag, reprDigest string) {
	sum := sha256.Sum256(served)
	return `"` + hex.EncodeToString(sum[:]) + `"`, "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}
