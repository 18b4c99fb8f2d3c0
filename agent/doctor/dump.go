// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/wording"
)

// Dump is what of a cluster's objects a node's configs are found in, from `oc get machineconfigs,machineconfigpools -o
// yaml`. Other objects in it are passed over.
type Dump struct {
	configs map[string]json.RawMessage // by name
	pools   map[string]string          // pool to the name of the config it is to have
}

type object struct {
	Kind     string            `json:"kind"`
	Items    []json.RawMessage `json:"items"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Configuration struct {
			Name string `json:"name"`
		} `json:"configuration"`
	} `json:"spec"`
}

// ParseDump reads a List, or one object, as JSON or YAML.
func ParseDump(text []byte) (*Dump, error) {
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("the dump is neither JSON nor YAML: %w", err)
	}
	dump := &Dump{configs: map[string]json.RawMessage{}, pools: map[string]string{}}
	var list object
	if err := json.Unmarshal(asJSON, &list); err != nil {
		return nil, fmt.Errorf("the dump holds no Kubernetes objects: %s; write it with kubectl get -o json", wording.Error(err))
	}
	items := list.Items
	if items == nil {
		items = []json.RawMessage{asJSON}
	}
	for _, item := range items {
		var o object
		if err := json.Unmarshal(item, &o); err != nil {
			continue // an object of another shape is none of ours
		}
		switch o.Kind {
		case "MachineConfig":
			dump.configs[o.Metadata.Name] = item
		case "MachineConfigPool":
			dump.pools[o.Metadata.Name] = o.Spec.Configuration.Name
		}
	}
	if len(dump.configs)+len(dump.pools) == 0 {
		return nil, fmt.Errorf("the dump holds no MachineConfig and no MachineConfigPool; make it with: oc get machineconfigs,machineconfigpools -o yaml")
	}
	return dump, nil
}

// target is the config the cluster wants a pool to have, nil when the dump does not say or does not have it.
func (d *Dump) target(pool string) *snapshot.Snapshot {
	if d == nil {
		return nil
	}
	return d.sealed(d.pools[pool], pool)
}

func (d *Dump) sealed(name, pool string) *snapshot.Snapshot {
	config, there := d.configs[name]
	if !there {
		return nil
	}
	s, err := snapshot.Seal(config, pool)
	if err != nil {
		return nil
	}
	return s
}

// cluster tells whether the dump has the config that the node needs.
func cluster(dump *Dump, name string, ours *snapshot.Snapshot) Source {
	source := Source{Name: "cluster"}
	if dump == nil {
		source.Open = true
		source.Says = "not asked: the agent is no client of it; give a dump with --cluster"
		return source
	}
	pool := "unknown"
	if ours != nil {
		pool = ours.Pool()
	}
	theirs := dump.sealed(name, pool)
	switch {
	case theirs == nil:
		source.Says = "has no MachineConfig " + name
		if target := dump.pools[pool]; target != "" {
			source.Says += "; pool " + pool + " is to have " + target
		}
	case ours != nil && ours.Name() == name && !snapshot.SameConfig(ours, theirs):
		source.Says = fmt.Sprintf("has %s with another spec than the snapshot (%s, snapshot %s)", name, theirs.Digest(), ours.Digest())
	default:
		source.Has, source.Says = true, "has "+name
	}
	return source
}
