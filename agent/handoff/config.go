// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/wording"
)

// Config is /etc/mcsnap/agent.yaml, which the server writes through Ignition. A config-less node has none: it cannot
// fetch, and hands over what verifies.
type Config struct {
	// APIVersion is mcsnap/v1.
	APIVersion string `json:"apiVersion"`

	// Servers are the addresses a damaged snapshot is fetched from, such as https://api-int.example.com:22623, asked in
	// turn.
	Servers []string `json:"servers"`

	// CA is one or more certificates in PEM that the servers' must descend from. Empty means the system's.
	CA string `json:"ca"`

	// AuthHeader is the name of the header that carries the content of /etc/mcsnap/token. Without a token file, or
	// without a name, no such header is sent.
	AuthHeader string `json:"authHeader"`

	// OnFailure is what a failed hand-over means for the kubelet: Continue (the default) or Block.
	OnFailure OnFailure `json:"onFailure"`
}

// OnFailure is the policy for a hand-over that fails.
type OnFailure string

const (
	// Continue lets the unit fail and the kubelet start: a node that joins and reports beats one that hides.
	Continue OnFailure = "continue"

	// Block keeps trying, and with it the kubelet from starting, until the hand-over is done.
	Block OnFailure = "block"
)

// ParseOnFailure reads a policy; "" is the default.
func ParseOnFailure(text string) (OnFailure, error) {
	switch policy := OnFailure(text); policy {
	case "":
		return Continue, nil
	case Continue, Block:
		return policy, nil
	}
	return "", fmt.Errorf("on failure %q: use %s or %s", text, Continue, Block)
}

// ReadConfig reads the node's agent.yaml strictly. It returns nil when the node has none.
func ReadConfig(node *root.Root) (*Config, error) {
	text, err := node.ReadFile(ConfigPath, maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, machineError(err)
	}
	config, err := parseConfig(text)
	if err != nil {
		return nil, &InputError{ConfigPath, err.Error(), "mend the file, or remove it when no server is to be asked"}
	}
	return config, nil
}

// ReadToken reads the credential for the servers, "" when the node has none.
func ReadToken(node *root.Root) (string, error) {
	token, err := node.ReadFile(TokenPath, maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(token)), machineError(err)
}

func parseConfig(text []byte) (*Config, error) {
	var keys map[string]any
	if err := yaml.UnmarshalStrict(text, &keys); err != nil {
		return nil, errors.New(oneLine(err))
	}
	known := []string{"apiVersion", "authHeader", "ca", "onFailure", "servers"}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(known, key) {
			return nil, fmt.Errorf("unknown key %q: did you mean %q?", key, nearest(key, known))
		}
	}
	config := &Config{}
	if err := yaml.UnmarshalStrict(text, config); err != nil {
		return nil, errors.New(oneLine(err))
	}
	if config.APIVersion != snapshot.APIVersion {
		return nil, fmt.Errorf("apiVersion %q: want %q", config.APIVersion, snapshot.APIVersion)
	}
	if len(config.Servers) == 0 {
		return nil, errors.New("servers: name at least one, such as https://api-int.example.com:22623")
	}
	for _, server := range config.Servers {
		at, err := url.Parse(server)
		if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" {
			return nil, fmt.Errorf("servers: %q is no http or https address", server)
		}
	}
	policy, err := ParseOnFailure(string(config.OnFailure))
	if err != nil {
		return nil, err
	}
	config.OnFailure = policy
	return config, nil
}

// nearest is the known key with the fewest letters to change.
func nearest(key string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int { return distance(key, a) - distance(key, b) })
}

// distance is Levenshtein's, with letters of either case alike.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	previous := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := previous[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, previous[j+1]+1, row[j]+1)
		}
		previous = row
	}
	return previous[len(b)]
}

func oneLine(err error) string { return wording.JSON(strings.Join(strings.Fields(err.Error()), " ")) }
