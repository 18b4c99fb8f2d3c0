// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/snapshot/wording"
)

// poolFollower keeps the pools.
type poolFollower struct{ s *Source }

func (f poolFollower) observe(_ context.Context, m meta, raw json.RawMessage) {
	type configuration struct {
		Name string `json:"name"`
	}
	var p struct {
		Spec struct {
			Configuration configuration `json:"configuration"`
		} `json:"spec"`
		Status struct {
			Configuration configuration `json:"configuration"`
			Updated       int32         `json:"updatedMachineCount"`
		} `json:"status"`
	}
	s := f.s
	if err := json.Unmarshal(raw, &p); err != nil {
		s.log.Error("a MachineConfigPool cannot be read; it keeps what it had", "pool", m.Metadata.Name, "error", wording.Error(err))
		return
	}
	is := source.Pool{
		Name: m.Metadata.Name, Spec: p.Spec.Configuration.Name,
		Status: p.Status.Configuration.Name, Updated: p.Status.Updated,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.cfg.ForceSpec, is.Name) && is.Updated <= 0 && is.Spec != "" && is.Spec != is.Status {
		if was := s.pools[is.Name]; was.Spec != is.Spec {
			s.log.Warn("audit: new nodes get spec.configuration before any machine has proved it, as was asked for",
				"pool", is.Name, "spec", is.Spec, "status", is.Status)
		}
		is.Updated = 1
	}
	if s.pools[is.Name] != is {
		for _, name := range []string{is.Spec, is.Status} {
			if _, exists := s.live[name]; !exists {
				delete(s.retry, name) // a name that was looked for in vain may exist now
			}
		}
		s.pools[is.Name] = is
		s.touch()
	}
}

func (f poolFollower) gone(_ context.Context, m meta, _ json.RawMessage) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	delete(f.s.pools, m.Metadata.Name)
	f.s.touch()
}

func (f poolFollower) complete(names map[string]bool) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	for name := range f.s.pools {
		if !names[name] {
			delete(f.s.pools, name)
		}
	}
	delete(f.s.waiting, kindPools)
	f.s.touch()
}

// controllerFollower keeps what is taken from the ControllerConfig. An object that is gone leaves what it said: nodes
// that lost their CAs could not join, and nothing says that they changed.
type controllerFollower struct{ s *Source }

func (f controllerFollower) observe(_ context.Context, _ meta, raw json.RawMessage) {
	var c struct {
		Spec struct {
			KubeletCA []byte `json:"kubeAPIServerServingCAData"`
			CloudCA   []byte `json:"cloudProviderCAData"`
			Infra     struct {
				Status struct {
					InternalAPIServer string `json:"apiServerInternalURI"`
				} `json:"status"`
			} `json:"infra"`
		} `json:"spec"`
	}
	s := f.s
	if err := json.Unmarshal(raw, &c); err != nil {
		s.log.Error("the ControllerConfig cannot be read; what it said before stays", "error", wording.Error(err))
		return
	}
	is := &source.ControllerConfig{
		KubeletCA: c.Spec.KubeletCA, CloudCA: c.Spec.CloudCA, InternalAPIServer: c.Spec.Infra.Status.InternalAPIServer,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !reflect.DeepEqual(is, s.controller) {
		s.controller = is
		s.touch()
	}
}

func (f controllerFollower) gone(context.Context, meta, json.RawMessage) {
	f.s.log.Warn("the ControllerConfig was deleted; the CAs it named last are served on")
}

func (f controllerFollower) complete(map[string]bool) { f.s.completed(kindController) }

// bundleFollower keeps the CA bundle of the kubeconfig for nodes.
type bundleFollower struct{ s *Source }

func (f bundleFollower) observe(_ context.Context, _ meta, raw json.RawMessage) {
	var c struct {
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		f.s.log.Error("the ConfigMap with the CA bundle cannot be read; what it said before stays", "error", wording.Error(err))
		return
	}
	f.set(c.Data["ca-bundle.crt"])
}

func (f bundleFollower) set(bundle string) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if string(f.s.bundle) != bundle {
		f.s.bundle = []byte(bundle)
		f.s.touch()
	}
}

func (f bundleFollower) gone(context.Context, meta, json.RawMessage) { f.set("") }

func (f bundleFollower) complete(names map[string]bool) {
	if len(names) == 0 {
		f.set("")
	}
	f.s.completed(kindBundle)
}

func (s *Source) completed(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, kind)
	s.touch()
}
