// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/coreos/ignition/v2/config/v3_6/types"

	"github.com/mcsnap/mcsnap/snapshot/wording"
)

// node is a config and those it names.
type node struct {
	raw     []byte
	version string
	config  types.Config // raw, in the newest version: to follow it, not to merge it
	replace *node
	merge   []*node
}

// read parses a config of any version known here.
func (r *resolution) read(what string, raw []byte) (*node, error) {
	var head struct {
		Ignition struct {
			Version string `json:"version"`
		} `json:"ignition"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, wrong(what, "not an Ignition config: not JSON: %v", err)
	}
	if strings.HasPrefix(head.Ignition.Version, "2.") {
		return nil, wrong(what, "spec %s is not resolved here; the server has the config in 3.x too", head.Ignition.Version)
	}
	config, report, err := v3_6.ParseCompatibleVersion(raw)
	if err != nil || report.IsFatal() {
		problem := strings.Join(strings.Fields(strings.ReplaceAll(report.String(), "\n", "; ")), " ")
		if problem == "" {
			problem = err.Error()
		}
		return nil, wrong(what, "Ignition finds: %s", problem)
	}
	return &node{raw: raw, version: head.Ignition.Version, config: config}, nil
}

// follow reads what a config names, in Ignition's order: a replacement takes the config's place at once; of several to
// merge, each may change CAs, proxy and time for those after it.
func (r *resolution) follow(n *node, merged types.Config, depth int) (err error) {
	if depth > maxDepth {
		return wrong("ignition.config", "configs name configs more than %d deep; do they name each other?", maxDepth)
	}
	if replace := n.config.Ignition.Config.Replace; replace.Source != nil {
		if n.replace, err = r.readReference(replace, "ignition.config.replace", depth == 0); err != nil {
			return err
		}
		if err := r.use(n.replace.config); err != nil {
			return err
		}
		return r.follow(n.replace, n.replace.config, depth+1)
	}
	for i, reference := range n.config.Ignition.Config.Merge {
		child, err := r.readReference(reference, fmt.Sprintf("ignition.config.merge.%d", i), depth == 0 && i == 0)
		if err != nil {
			return err
		}
		n.merge = append(n.merge, child)
		merged = v3_6.Merge(merged, child.config)
		if err := r.use(merged); err != nil {
			return err
		}
		if err := r.follow(child, child.config, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (r *resolution) readReference(reference types.Resource, where string, first bool) (*node, error) {
	var also []string
	if first {
		also = r.Also
	}
	body, err := r.get(reference, "config "+where, also, func(body []byte) error {
		_, err := r.read(where, body)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r.read(where, body)
}

// newest is the newest version that a config or anything below it has.
func (n *node) newest() string {
	version := n.version
	for _, child := range append(n.merge, n.replace) {
		if child != nil {
			version = max(version, child.newest())
		}
	}
	return version
}

// render merges the whole tree, in the newest version that stands in it and with that version's own code.
func (n *node) render() (config any, version string, err error) {
	version = n.newest()
	dialect, known := dialects[version]
	if !known {
		return nil, "", wrong("ignition.version", "%.20q is not a version that is merged here", version)
	}
	config, err = n.mergeIn(dialect)
	return config, version, err
}

func (n *node) mergeIn(d dialect) (any, error) {
	if n.replace != nil {
		return n.replace.mergeIn(d)
	}
	merged, err := d.parse(n.raw)
	if err != nil {
		return nil, wrong("ignition", "%s", wording.Error(err))
	}
	for _, child := range n.merge {
		rendered, err := child.mergeIn(d)
		if err != nil {
			return nil, err
		}
		merged = d.merge(merged, rendered)
	}
	return merged, nil
}
