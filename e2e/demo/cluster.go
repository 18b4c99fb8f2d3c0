// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// cluster is what the cluster knows: the folder's MachineConfigs, read as a daemon reads them, through a lister.
type cluster struct{ folder string }

func (c cluster) Get(name string) (*mcfgv1.MachineConfig, error) {
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

func (c cluster) List(selector labels.Selector) ([]*mcfgv1.MachineConfig, error) {
	files, err := filepath.Glob(filepath.Join(c.folder, "machine-configs", "*.yaml"))
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
