// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"

	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/coreos/ignition/v2/config/v3_6/types"

	"github.com/mcsnap/mcsnap/mcs/specver"
)

// maxNesting bounds how deep configs may stand inside each other.
const maxNesting = 8

// resolve merges the Ignition configs that stand inside this one as data URLs, by Ignition's own rules and in its order.
// A client that reads the asked version need not read a newer one inside it (field case 33), and a config inside must not
// win over what is added. References to configs elsewhere stay; where they would undo the order, or replace everything
// with the snapshot among it, the config is refused.
func resolve(cfg types.Config) (types.Config, error) {
	merged, err := resolveAt(cfg, "", 0)
	if err != nil || len(cfg.Ignition.Config.Merge) == 0 && cfg.Ignition.Config.Replace.Source == nil {
		return merged, err
	}
	body, err := specver.Marshal(merged)
	if err != nil {
		return merged, err
	}
	if _, err := specver.Check(body, specver.Newest); err != nil { // two valid configs can make an invalid one
		return merged, &InvalidConfigError{Field: "spec.config", Reason: "merged with the configs inside it: " + err.Error()}
	}
	return merged, nil
}

func resolveAt(cfg types.Config, within string, depth int) (types.Config, error) {
	invalid := func(field, reason string) (types.Config, error) {
		return cfg, &InvalidConfigError{Field: "spec.config." + within + "ignition.config." + field, Reason: reason}
	}
	if depth > maxNesting {
		return invalid("merge", fmt.Sprintf("configs stand more than %d deep in each other", maxNesting))
	}
	refs := cfg.Ignition.Config
	if value(refs.Replace.Source) != "" {
		inner, err := inside(within+"ignition.config.replace", &refs.Replace, depth)
		if err == nil && inner == nil {
			return invalid("replace", "a config elsewhere would take the place of this one, and of the snapshot with it")
		}
		if err != nil {
			return cfg, err
		}
		return *inner, nil
	}
	merged := cfg
	var elsewhere []types.Resource
	for i := range refs.Merge {
		field := fmt.Sprintf("merge.%d", i)
		inner, err := inside(within+"ignition.config."+field, &refs.Merge[i], depth)
		switch {
		case err != nil:
			return cfg, err
		case inner == nil:
			elsewhere = append(elsewhere, refs.Merge[i])
		case len(elsewhere) > 0:
			return invalid(field, "it stands here after a config elsewhere, so that the result cannot be known: put it first")
		default:
			elsewhere = append(elsewhere, inner.Ignition.Config.Merge...)
			inner.Ignition.Config = types.IgnitionConfig{}
			merged = v3_6.Merge(merged, *inner)
		}
	}
	merged.Ignition.Config = types.IgnitionConfig{Merge: elsewhere}
	return merged, nil
}

// inside reads the config of a data URL, itself resolved. It returns nil for a config elsewhere.
func inside(field string, res *types.Resource, depth int) (*types.Config, error) {
	doc, err := open(field, res)
	if err != nil || doc == nil {
		return nil, err
	}
	inner, _, err := specver.Up(doc)
	if err != nil {
		return nil, &InvalidConfigError{Field: "spec.config." + field, Reason: "the config inside: " + err.Error()}
	}
	resolved, err := resolveAt(inner, field+": ", depth+1)
	return &resolved, err
}
