// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// configFollower captures rendered configs.
type configFollower struct{ s *Source }

// renderedName is how rendered configs are named, old ones (master-<hash>) included.
var renderedName = regexp.MustCompile(`^(?:rendered-)?(.+)-[0-9a-f]{32}$`)

// poolOf returns the pool that a MachineConfig was rendered for, "" when it is not a rendered one: its owner's, else
// what its name says, else the pool's that names it.
func (s *Source) poolOf(m meta) string {
	for _, owner := range m.Metadata.OwnerReferences {
		if owner.Kind == "MachineConfigPool" {
			return owner.Name
		}
	}
	if match := renderedName.FindStringSubmatch(m.Metadata.Name); match != nil {
		return match[1]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pool := range slices.Sorted(maps.Keys(s.pools)) {
		if p := s.pools[pool]; p.Spec == m.Metadata.Name || p.Status == m.Metadata.Name {
			return pool
		}
	}
	return ""
}

func (f configFollower) observe(ctx context.Context, m meta, raw json.RawMessage) {
	s := f.s
	name := m.Metadata.Name
	pool := s.poolOf(m)
	s.mu.Lock()
	known, seen := s.live[name]
	s.mu.Unlock()
	if pool == "" || seen && known.uid == m.Metadata.UID && known.version == m.Metadata.ResourceVersion {
		s.advance(m)
		return
	}
	digest, err := s.capture(ctx, raw, pool)
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = m.Metadata.ResourceVersion
	s.note(name, digest, m, err)
	s.touch()
}

// note records the outcome of a capture. Callers hold s.mu.
func (s *Source) note(name string, digest snapshot.Digest, m meta, err error) {
	delete(s.retry, name)
	if held, is := errors.AsType[*store.HeldError](err); is {
		s.retry[name] = s.cfg.Now().Add(s.cfg.Recheck)
		digest, err = held.Digest, nil
	}
	if err != nil {
		if s.broken[name] != err.Error() {
			s.log.Error("a rendered config cannot be captured; pools that name it stay with what they have", "rendered", name, "error", err)
		}
		s.broken[name], s.retry[name] = err.Error(), s.cfg.Now().Add(s.cfg.Recheck)
		return
	}
	delete(s.broken, name)
	if s.live[name].digest != digest {
		s.log.Info("captured", "rendered", name, "digest", digest)
	}
	s.live[name] = live{digest: digest, uid: m.Metadata.UID, version: m.Metadata.ResourceVersion}
}

// capture seals a rendered config and has it in the store. It returns when the config is on stable storage, or kept in
// memory by a store that holds what the disk does not take (a *store.HeldError), or will never be sealed. A store that
// does neither is waited for: reading on would forget the content.
func (s *Source) capture(ctx context.Context, raw []byte, pool string) (snapshot.Digest, error) {
	sealed, err := snapshot.Seal(raw, pool)
	if err != nil {
		return "", err
	}
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, maxBackoff) {
		err := s.cfg.Store.Put(ctx, sealed)
		if _, held := errors.AsType[*store.HeldError](err); err == nil || held || ctx.Err() != nil {
			return sealed.Digest(), err
		}
		s.log.Error("a rendered config cannot be stored; waiting, so that it is not lost", "rendered", sealed.Name(), "error", err)
		wait(ctx, pause)
	}
}

// advance notes that all up to an object's version is captured.
func (s *Source) advance(m meta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = m.Metadata.ResourceVersion
}

func (f configFollower) gone(_ context.Context, m meta, _ json.RawMessage) {
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = m.Metadata.ResourceVersion
	s.forget(m.Metadata.Name, m.Metadata.UID)
}

// forget notes that a rendered config no longer exists. Its snapshot stays. Callers hold s.mu.
func (s *Source) forget(name, uid string) {
	was, known := s.live[name]
	if known && uid != "" && was.uid != "" && was.uid != uid { // an older one of that name
		return
	}
	delete(s.live, name)
	delete(s.retry, name)
	delete(s.broken, name)
	if known {
		s.log.Info("a rendered config was deleted from the cluster; its snapshot stays", "rendered", name, "digest", was.digest)
		s.touch()
	}
}

func (f configFollower) complete(names map[string]bool) {
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.live {
		if !names[name] {
			s.forget(name, "")
		}
	}
	delete(s.waiting, kindConfigs)
	s.touch()
}

// fetchNamed captures rendered configs that a pool names and that are not in the store: the pool's event may have come
// before the config's, and a name may look like none of a rendered config. It reports whether it found one.
func (s *Source) fetchNamed(ctx context.Context) (found bool) {
	now := s.cfg.Now()
	wanted := map[string]string{}
	s.mu.Lock()
	for _, pool := range s.pools {
		for _, name := range []string{pool.Spec, pool.Status} {
			if _, exists := s.live[name]; !exists && name != "" && !now.Before(s.retry[name]) {
				wanted[name] = pool.Name
			}
		}
	}
	for name, due := range s.retry {
		if _, exists := s.live[name]; exists && !now.Before(due) {
			wanted[name] = ""
		}
	}
	s.mu.Unlock()
	for name, pool := range wanted {
		if pool != "" {
			if _, err := s.cfg.Store.Digests(ctx, name); err == nil { // gone from the cluster, not from the store
				continue
			}
		}
		found = s.fetch(ctx, name, pool) || found
	}
	return found
}

// fetch captures one config that the watch did not bring, if it exists.
func (s *Source) fetch(ctx context.Context, name, pool string) (found bool) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	raw, err := s.api.object(ctx, "/apis/machineconfiguration.openshift.io/v1/machineconfigs/"+url.PathEscape(name))
	var m meta
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if isNotFound(err) {
			s.forget(name, "")
		}
		s.retry[name] = s.cfg.Now().Add(maxBackoff)
		return false
	}
	if owner := s.poolOf(m); owner != "" {
		pool = owner
	}
	if pool == "" {
		return false
	}
	digest, err := s.capture(ctx, raw, pool)
	if ctx.Err() != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(name, digest, m, err)
	return true
}

// recheck captures again what the cluster has and the store has lost: a damaged blob that was put aside, a file that was
// removed by hand.
func (s *Source) recheck(ctx context.Context) {
	s.mu.Lock()
	exist := maps.Clone(s.live)
	s.mu.Unlock()
	for name, config := range exist {
		digests, err := s.cfg.Store.Digests(ctx, name)
		if err != nil && !errors.Is(err, store.ErrNotFound) || slices.Contains(digests, config.digest) {
			continue
		}
		s.log.Warn("the store has lost a rendered config that the cluster still has; capturing it again", "rendered", name, "digest", config.digest)
		s.fetch(ctx, name, "")
	}
	s.touch()
}
