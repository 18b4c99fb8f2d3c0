// SPDX-License-Identifier: Apache-2.0

// Package witness looks at a node's root as the node's daemon would, and says whether the node is what was rendered for
// it. It changes nothing but for Flip, which does what a bad disk does.
package witness

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/lister"
)

// Files of a node that are looked at.
const (
	CurrentConfig = "/etc/machine-config-daemon/currentconfig"
	Annotations   = "/etc/machine-config-daemon/node-annotations.json"
	Record        = "/var/lib/mcsnap/handover.json"
)

// DesiredConfig is the annotation that names the config a node shall run.
const DesiredConfig = "machineconfiguration.openshift.io/desiredConfig"

// HandedOver checks that a daemon which starts on this root finds exactly the rendered config, wherever it looks: as
// its own current config, in the snapshot, and by name through the lister overlay over what the cluster still knows.
func HandedOver(root string, rendered *snapshot.Snapshot, cluster lister.MachineConfigLister) error {
	current, err := os.ReadFile(filepath.Join(root, CurrentConfig))
	if err != nil {
		return fmt.Errorf("nothing was handed over: %w", err)
	}
	var object mcfgv1.MachineConfig
	if err := json.Unmarshal(current, &object); err != nil {
		return fmt.Errorf("%s: %w", CurrentConfig, err)
	}
	if owners := object.OwnerReferences; len(owners) != 1 || owners[0].Kind != "MachineConfigPool" || owners[0].Name != rendered.Pool() {
		return fmt.Errorf("%s is owned by %v, want the pool %s", CurrentConfig, owners, rendered.Pool())
	}
	for _, secret := range []string{CurrentConfig, snapshot.Path} {
		info, err := os.Stat(filepath.Join(root, secret))
		if err != nil {
			return err
		}
		if info.Mode() != 0o600 {
			return fmt.Errorf("%s has mode %v, want 0600: it holds secrets", secret, info.Mode())
		}
	}

	fromFile, err := snapshot.LoadFile(filepath.Join(root, snapshot.Path))
	if err != nil {
		return err
	}
	overlay, err := lister.New(cluster, fromFile, nil)
	if err != nil {
		return err
	}
	listed, err := overlay.Get(rendered.Name())
	if err != nil {
		return fmt.Errorf("through the lister overlay: %w", err)
	}
	fromLister, err := json.Marshal(listed)
	if err != nil {
		return err
	}
	return errors.Join(
		same(CurrentConfig, current, rendered),
		same(snapshot.Path, fromFile.MachineConfig(), rendered),
		same("the lister overlay", fromLister, rendered))
}

// same checks that a MachineConfig is the one that was rendered, down to its digest.
func same(what string, config []byte, rendered *snapshot.Snapshot) error {
	got, err := snapshot.Seal(config, rendered.Pool())
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if got.Digest() != rendered.Digest() {
		return fmt.Errorf("%s: %s %s, want %s %s", what, got.Name(), got.Digest(), rendered.Name(), rendered.Digest())
	}
	return nil
}

// Source tells where the snapshot that was handed over came from, as the agent wrote it down: "embedded" or "fetched".
func Source(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, Record))
	if err != nil {
		return "", err
	}
	var record struct{ Source string }
	if err := json.Unmarshal(text, &record); err != nil {
		return "", fmt.Errorf("%s: %w", Record, err)
	}
	return record.Source, nil
}

// Desired is the name of the config that the node's annotations will ask for.
func Desired(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, Annotations))
	if err != nil {
		return "", err
	}
	var annotations map[string]string
	if err := json.Unmarshal(text, &annotations); err != nil {
		return "", fmt.Errorf("%s: %w", Annotations, err)
	}
	return annotations[DesiredConfig], nil
}

// Flip changes one bit in the middle of a root's file.
func Flip(root, name string) error {
	path := filepath.Join(root, name)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	text[len(text)/2] ^= 1
	return os.WriteFile(path, text, info.Mode().Perm())
}
