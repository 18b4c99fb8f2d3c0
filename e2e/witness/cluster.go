// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"fmt"
	"os"
	"path/filepath"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// Cluster is what a cluster knows: the MachineConfigs of a folder, read as a daemon reads them, through a lister.
type Cluster struct{ Folder string }

// Get is a daemon's look-up by name: what is not there is NotFound, with the API server's own words.
func (c Cluster) Get(name string) (*mcfgv1.MachineConfig, error) {
	all, err := c.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	for _, config := range all {
		if config.Name == name {
			return config, nil
		}
	}
	return nil, apierrors.NewNotFound(mcfgv1.Resource("machineconfigs"), name)
}

// List returns every config that a selector matches.
func (c Cluster) List(selector labels.Selector) ([]*mcfgv1.MachineConfig, error) {
	files, err := filepath.Glob(filepath.Join(c.Folder, "machine-configs", "*.yaml"))
	if err != nil {
		return nil, err
	}
	var all []*mcfgv1.MachineConfig
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var config mcfgv1.MachineConfig
		if err := yaml.UnmarshalStrict(text, &config); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if selector.Matches(labels.Set(config.Labels)) {
			all = append(all, &config)
		}
	}
	return all, nil
}
