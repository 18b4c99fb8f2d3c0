// SPDX-License-Identifier: Apache-2.0

// Package example is an invented cluster of realistic size, in the folder layout of OpenShift's bootstrap server: one
// pool, its rendered config and the controller's config. Everything about it is made from the files under node and the
// tables here, so that the same generation always has the same bytes. It serves the demo and tests; it configures no
// machine that does anything.
package example

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

//go:generate go run ./write cluster

// Pool is the name of the example's only pool.
const Pool = "worker"

// Generation is one rendered config of the pool, and the pool when it names that config.
type Generation struct {
	Number        int
	Name          string // of the rendered config
	MachineConfig []byte // YAML
	PoolObject    []byte // YAML
}

// Render makes generation n of the pool's rendered config. Generations differ in a kernel setting; from the second on
// they have besides a file of their own, and from the third on a kernel argument.
func Render(n int) (Generation, error) {
	if n < 1 {
		return Generation{}, fmt.Errorf("render generation %d: generations count from 1", n)
	}
	config, err := machineConfig(n)
	if err != nil {
		return Generation{}, fmt.Errorf("render generation %d: %w", n, err)
	}
	g := Generation{Number: n, Name: config.Name}
	if g.MachineConfig, err = yaml.Marshal(config); err != nil {
		return Generation{}, fmt.Errorf("render generation %d: %w", n, err)
	}
	if g.PoolObject, err = yaml.Marshal(pool(config.Name)); err != nil {
		return Generation{}, fmt.Errorf("render generation %d: the pool: %w", n, err)
	}
	return g, nil
}

// ConfigFile and PoolFile are where the generation's objects lie in the cluster's folder.
func (g Generation) ConfigFile() string { return "machine-configs/" + g.Name + ".yaml" }
func (g Generation) PoolFile() string   { return "machine-pools/" + Pool + ".yaml" }

// Cluster makes the whole folder at generation 1: file name, relative to the folder, to contents.
func Cluster() (map[string][]byte, error) {
	g, err := Render(1)
	if err != nil {
		return nil, err
	}
	controller, err := controllerConfig()
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(controller)
	if err != nil {
		return nil, fmt.Errorf("render the controller's config: %w", err)
	}
	return map[string][]byte{
		g.ConfigFile(): g.MachineConfig,
		g.PoolFile():   g.PoolObject,
		"controller-config/machine-config-controller.yaml": text,
	}, nil
}

// Write lays files out below a folder.
func Write(folder string, files map[string][]byte) error {
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write the example: %w", err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("write the example: %w", err)
		}
	}
	return nil
}
