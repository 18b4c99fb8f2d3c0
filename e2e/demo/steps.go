// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/coreos/ignition/v2/config/v3_5"
	ign "github.com/coreos/ignition/v2/config/v3_5/types"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mcsnap/mcsnap/e2e/example"
	"github.com/mcsnap/mcsnap/e2e/lab"
	"github.com/mcsnap/mcsnap/e2e/server"
	"github.com/mcsnap/mcsnap/e2e/witness"
	"github.com/mcsnap/mcsnap/snapshot"
)

const agentPath = "/usr/local/bin/mcsnap-agent"

// demo is the stage: one cluster, one server, one node.
type demo struct {
	bin, work       string
	ignitionVersion string
	cluster         witness.Cluster
	server          server.Server
	root            root

	born     example.Generation // what the node booted from
	rendered *snapshot.Snapshot // born, sealed here from what was rendered: what everything is compared with
}

func newDemo(ignitionVersion string) (*demo, error) {
	bin, err := server.Bin()
	if err != nil {
		return nil, err
	}
	d := &demo{bin: bin, ignitionVersion: ignitionVersion}
	if d.born, err = example.Render(1); err != nil {
		return nil, err
	}
	if d.rendered, err = snapshot.Seal(d.born.MachineConfig, example.Pool); err != nil {
		return nil, err
	}
	if d.work, err = os.MkdirTemp("", "mcsnap-demo-"); err != nil {
		return nil, err
	}
	d.cluster = witness.Cluster{Folder: filepath.Join(d.work, "cluster")}
	d.root = root(filepath.Join(d.work, "root"))
	d.server = server.Server{
		State: filepath.Join(d.work, "state"), Log: filepath.Join(d.work, "mcs.log"),
		Host: "127.0.0.1", // a fresh root resolves no name, not even localhost
	}
	if d.server.Args, err = server.Bootstrap(d.cluster.Folder); err != nil {
		return nil, err
	}
	return d, nil
}

// serve is step (a).
func (d *demo) serve(ctx context.Context) (string, error) {
	files, err := example.Cluster()
	if err != nil {
		return "", err
	}
	if err := example.Write(d.cluster.Folder, files); err != nil {
		return "", err
	}
	if err := d.server.Start(ctx); err != nil {
		return "", err
	}
	if err := d.server.Serves(ctx, example.Pool, d.born.Name); err != nil {
		return "", err
	}
	body, _, err := d.server.Get(ctx, "/config/"+example.Pool)
	if err != nil {
		return "", err
	}
	config, err := d.bornConfig()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("mcs serves pool %s: %s, with %d files, %d units, %d kernel arguments and an SSH key, in %d KB",
		example.Pool, short(d.born.Name), len(config.Storage.Files), len(config.Systemd.Units),
		len(config.KernelArguments.ShouldExist)+len(d.bornObject().Spec.KernelArguments), len(body)/1000), nil
}

// boot is step (b).
func (d *demo) boot(ctx context.Context) (string, error) {
	stub, err := d.server.Stub(ctx, example.Pool)
	if err != nil {
		return "", err
	}
	booted, err := lab.Boot{Config: stub, Root: string(d.root), Timeout: 2 * time.Minute}.Run(ctx)
	if err != nil {
		return "", err
	}
	config, err := d.bornConfig()
	if err != nil {
		return "", err
	}
	agent, err := os.ReadFile(filepath.Join(d.bin, "mcsnap-agent"))
	if err != nil {
		return "", err
	}
	if err := errors.Join(d.root.holds(config), d.root.hasFile(agentPath, agent, 0o755)); err != nil {
		return "", err
	}
	if arguments := strings.Join(booted.KernelArgs, " "); arguments != "--should-exist mitigations=auto,nosmt" {
		return "", fmt.Errorf("Ignition set the kernel arguments %q", arguments)
	}
	if info, err := os.Stat(d.root.path(snapshot.Path)); err != nil || info.Mode().Perm() != 0o600 {
		return "", fmt.Errorf("%s on the root: %v, %w; want mode 0600", snapshot.Path, info, err)
	}
	return fmt.Sprintf("Ignition starts from a stub of %d bytes, and all of it is on the node, %s and the agent (%.1f MB) too",
		len(stub), snapshot.Path, float64(len(agent))/1e6), nil
}

// moveOn is step (c).
func (d *demo) moveOn(ctx context.Context) (string, error) {
	var names []string
	for n := 2; n <= 4; n++ {
		g, err := example.Render(n)
		if err != nil {
			return "", err
		}
		if err := example.Write(d.cluster.Folder, map[string][]byte{g.ConfigFile(): g.MachineConfig, g.PoolFile(): g.PoolObject}); err != nil {
			return "", err
		}
		if err := d.server.Serves(ctx, example.Pool, g.Name); err != nil {
			return "", err
		}
		names = append(names, strings.TrimPrefix(short(g.Name), "rendered-worker-"))
	}
	if err := os.Remove(filepath.Join(d.cluster.Folder, d.born.ConfigFile())); err != nil {
		return "", err
	}
	return fmt.Sprintf("the cluster moves on: %s, %s and %s are rendered, and %s is deleted",
		names[0], names[1], names[2], short(d.born.Name)), nil
}

// lookUp is step (d).
func (d *demo) lookUp(context.Context) (string, error) {
	name, err := witness.Desired(string(d.root))
	if err != nil {
		return "", err
	}
	if name != d.born.Name {
		return "", fmt.Errorf("the node's annotation names %q, want %q", name, d.born.Name)
	}
	_, err = d.cluster.Get(name)
	if !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("looking %s up gave %v, want NotFound", name, err)
	}
	return fmt.Sprintf("a daemon of today asks for its config by name: %s", strings.ReplaceAll(err.Error(), d.born.Name, short(d.born.Name))), nil
}

// handOver is step (e).
func (d *demo) handOver(ctx context.Context) (string, error) {
	if err := d.firstBoot(ctx); err != nil {
		return "", err
	}
	if err := witness.HandedOver(string(d.root), d.rendered, d.cluster); err != nil {
		return "", err
	}
	return fmt.Sprintf("the agent hands over; file and lister both give the daemon %s…, exactly what was rendered",
		d.rendered.Digest()[:len("sha256:")+12]), nil
}

// damage is step (f).
func (d *demo) damage(ctx context.Context) (string, error) {
	before, err := d.root.state()
	if err != nil {
		return "", err
	}
	if err := witness.Flip(string(d.root), snapshot.Path); err != nil {
		return "", err
	}
	_, damaged := snapshot.LoadFile(d.root.path(snapshot.Path))
	if damaged == nil {
		return "", errors.New("the damaged snapshot was accepted")
	}
	if err := d.firstBoot(ctx); err != nil {
		return "", err
	}
	if err := witness.HandedOver(string(d.root), d.rendered, d.cluster); err != nil {
		return "", err
	}
	if !d.server.Said("route=snapshot", "status=200", string(d.rendered.Digest())) {
		return "", errors.New("the server was not asked for the snapshot")
	}
	after, err := d.root.state()
	if err != nil {
		return "", err
	}
	if differ := changes(before, after); len(differ) > 0 {
		return "", fmt.Errorf("after the repair these are not as before: %s", strings.Join(differ, ", "))
	}
	return "one bit of the snapshot flips: the agent notices, fetches it back by digest, and every file is as it was", nil
}

// firstBoot runs the agent that Ignition wrote onto the root, on that root.
func (d *demo) firstBoot(ctx context.Context) error {
	said, err := exec.CommandContext(ctx, d.root.path(agentPath), "firstboot", "--root", string(d.root)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mcsnap-agent firstboot: %w: %s", err, said)
	}
	return nil
}

func (d *demo) bornConfig() (ign.Config, error) {
	config, report, err := v3_5.Parse(d.rendered.IgnitionConfig())
	if err != nil {
		return ign.Config{}, fmt.Errorf("the example's config: %w: %s", err, report)
	}
	return config, nil
}

func (d *demo) bornObject() (config mcfgv1.MachineConfig) {
	// Sealed content is JSON by construction.
	_ = json.Unmarshal(d.rendered.MachineConfig(), &config)
	return config
}

// short cuts a rendered config's name to what a person can tell apart.
func short(name string) string { return name[:len(name)-24] + "…" }
