// SPDX-License-Identifier: Apache-2.0

// Package source says what the server knows about pools at one moment, and which rendered config a pool gets.
//
// Where that knowledge comes from is the business of its implementations: source/directory reads a folder, the cluster
// source watches an API server. Neither this package nor a View holds the content of a rendered config: a source puts
// it into the store first and publishes the View that names it afterwards.
package source

import (
	"context"
	"time"

	"github.com/mcsnap/mcsnap/snapshot"
)

// A Source keeps a View current.
type Source interface {
	// Run calls publish with each new View until ctx ends, one call at a time. Every rendered config that a View's
	// pools name and that the source has seen is on stable storage before publish is called. Run returns nil when ctx ended it, and an
	// error only for what no waiting can mend.
	Run(ctx context.Context, publish func(*View)) error
}

// Pool is what selection needs to know of a MachineConfigPool.
type Pool struct {
	Name string
	// Spec is spec.configuration.name: the rendered config that the pool moves to.
	Spec string
	// Status is status.configuration.name: the rendered config that the pool has come from.
	Status string
	// Updated is status.updatedMachineCount: how many machines have reached Spec.
	Updated int32
	// Problem is one line about why this pool's state cannot be trusted right now, "" when it can. The pool keeps
	// its last good answer meanwhile.
	Problem string
	// Missing is one line about what may be the config that the pool names and that was never captured, "" when
	// nothing is known. A pool whose config was captured has no use for it.
	Missing string
}

// ControllerConfig is what the server takes from the object of that kind: what rotates apart from rendered configs.
type ControllerConfig struct {
	// KubeletCA is the PEM bundle that verifies the API server's clients (spec.kubeAPIServerServingCAData).
	KubeletCA []byte
	// CloudCA is the PEM bundle for the cloud provider's API (spec.cloudProviderCAData).
	CloudCA []byte
	// InternalAPIServer is the URL under which nodes reach the API server (spec.infra.status.apiServerInternalURI).
	InternalAPIServer string
}

// A View is everything a source knows at one moment. It is never changed after it was published.
type View struct {
	Pools map[string]Pool
	// Rendered maps the name of a rendered config to the digest it has now. A name that is missing here may still be
	// in the store: it existed once.
	Rendered map[string]snapshot.Digest
	// Controller is nil when there is no ControllerConfig.
	Controller *ControllerConfig
	// Kubeconfig is served to nodes as it is; nil means that nodes get none. It is a secret.
	Kubeconfig []byte
	// CredentialsExpire is when the credential in Kubeconfig ends; zero when it does not say.
	CredentialsExpire time.Time
	// CredentialProblem is one line about why no credentials can be handed out, "" when they can. Every pool
	// answers "not now" while there is one: a node without credentials would never join.
	CredentialProblem string
}

// Select returns the name of the rendered config that a new node of the pool gets, "" when the pool has none yet.
//
// It is OpenShift's rule: what is being rolled out, once at least one machine has proved that it works; until then
// what the pool is known to run.
func Select(p Pool) string {
	if p.Updated > 0 {
		return p.Spec
	}
	return p.Status
}
