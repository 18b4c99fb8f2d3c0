// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot"
)

// answer makes the next answer for a pool, given the one before (nil when there is none).
func (p *Publisher) answer(ctx context.Context, pool source.Pool, was *Answer) *Answer {
	if why := p.view.CredentialProblem; why != "" {
		return &Answer{Pool: pool.Name, Code: CodeCredentials, Reason: why}
	}
	chosen, trouble := p.choose(ctx, pool, was)
	if trouble != nil {
		return stay(was, &Answer{Pool: pool.Name, Code: trouble.code, Reason: trouble.reason})
	}
	next, err := p.bodies(ctx, pool, chosen, was)
	if err != nil {
		p.metrics.composeFailures.WithLabelValues(pool.Name).Inc()
		return stay(was, &Answer{
			Pool: pool.Name, Code: CodeCompose,
			Reason: fmt.Sprintf("%s cannot be served: %v", chosen.snapshot.Name(), err),
		})
	}
	if !next.Fallback && next.Stale == "" && (was == nil || was.Digest != next.Digest || was.Fallback || was.Stale != "") {
		if err := p.cfg.Store.Select(ctx, pool.Name, next.Digest); err != nil {
			p.metrics.storeFaults.Inc()
			next.Stale = fmt.Sprintf("the store cannot note what is served (%v); after a restart an older config might be", err)
		}
	}
	return same(was, next)
}

// stay keeps the bodies of the answer before, if there are any, and notes that they are old and why.
func stay(was, without *Answer) *Answer {
	if !was.Ready() {
		return without
	}
	kept := *was
	kept.Stale = without.Reason
	return same(was, &kept)
}

// same returns was if next says nothing else, so that nobody is told of a change that is none.
func same(was, next *Answer) *Answer {
	if was.Ready() && was.inputs == next.inputs && was.Fallback == next.Fallback && was.Stale == next.Stale {
		return was
	}
	return next
}

// bodies makes the bodies for every version that the chosen snapshot can be served in, or takes those of the answer
// before if they were made from the same.
func (p *Publisher) bodies(ctx context.Context, pool source.Pool, chosen choice, was *Answer) (*Answer, error) {
	in := p.cfg.Inputs
	in.Snapshot = chosen.snapshot
	in.Kubeconfig = p.view.Kubeconfig
	in.Files = append(in.Files[:len(in.Files):len(in.Files)], controllerFiles(p.view.Controller)...)

	next := &Answer{
		Pool: pool.Name, Digest: chosen.snapshot.Digest(), Rendered: chosen.snapshot.Name(),
		Fallback: chosen.fallback, Stale: chosen.stale, inputs: inputsOf(in),
	}
	next.served = p.servedOf(next.Digest)
	if was.Ready() && was.inputs == next.inputs {
		next.Bodies, next.Own, next.Inexpressible = was.Bodies, was.Own, was.Inexpressible
		next.Composed, next.Captured = was.Composed, was.Captured
		return next, nil
	}
	begun := p.cfg.Now()
	own, err := compose.Own(chosen.snapshot)
	if err != nil {
		return nil, err
	}
	next.Own, next.Composed, next.Captured = own, begun, p.captured(ctx, next.Digest)
	next.Bodies = map[specver.Version]*compose.Body{}
	next.Inexpressible = map[specver.Version]error{}
	for _, v := range specver.All {
		if own.Less(v) {
			continue
		}
		body, err := p.cfg.Compose(in, v)
		if err == nil && (len(body.JSON) == 0 || len(body.Gzip) == 0) {
			err = errEmpty
		}
		var lacks *specver.InexpressibleError
		switch {
		case err == nil:
			next.Bodies[v] = body
		case errors.As(err, &lacks) && v != own:
			next.Inexpressible[v] = err
		default:
			return nil, fmt.Errorf("in spec version %s: %w", v, err)
		}
	}
	p.metrics.composeTime.Observe(p.cfg.Now().Sub(begun).Seconds())
	return next, nil
}

// errEmpty is the worst that could be served: Ignition takes an empty 200 for a config and boots a bare machine.
var errEmpty = errors.New("the body is empty; please report this")

// Where OpenShift's server puts what rotates apart from rendered configs.
const (
	kubeletCAPath = "/etc/kubernetes/kubelet-ca.crt"
	cloudCAPath   = "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem"
)

func controllerFiles(c *source.ControllerConfig) []compose.File {
	if c == nil {
		return nil
	}
	var files []compose.File
	for _, f := range []struct {
		path     string
		contents []byte
	}{{kubeletCAPath, c.KubeletCA}, {cloudCAPath, c.CloudCA}} {
		if len(f.contents) > 0 {
			files = append(files, compose.File{Path: f.path, Contents: f.contents, Mode: 0o644, Reason: "controllerconfig"})
		}
	}
	return files
}

// inputsOf names what bodies are made from, as far as it changes while the server runs.
func inputsOf(in compose.Inputs) string {
	h := sha256.New()
	part := func(b []byte) { fmt.Fprintf(h, "%d:%s,", len(b), b) }
	part([]byte(in.Snapshot.Digest()))
	part([]byte(in.Snapshot.Pool()))
	part(in.Kubeconfig)
	for _, f := range in.Files {
		part([]byte(f.Path))
		part(f.Contents)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Served notes that a client was given the answer's snapshot; FlushServed writes it down.
func (a *Answer) Served(unix int64) {
	if a.served != nil {
		a.served.Store(unix)
	}
}

// servedOf returns the place where the last service of a digest is noted. Callers hold p.mu.
func (p *Publisher) servedOf(d snapshot.Digest) *atomic.Int64 {
	p.servedMu.Lock()
	defer p.servedMu.Unlock()
	if p.served[d] == nil {
		p.served[d] = &atomic.Int64{}
	}
	return p.served[d]
}
