// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A root's accounts: Ignition's passwd section looks them up and adds to them.
var accounts = map[string]string{
	"passwd": "root:x:0:0:root:/root:/bin/bash\ncore:x:1000:1000:core:/home/core:/bin/bash\n",
	"group":  "root:x:0:\ncore:x:1000:\n",
	"shadow": "root:*:19000:0:99999:7:::\ncore:*:19000:0:99999:7:::\n",
}

const coreID = 1000

// prepareRoot makes a root usable by Ignition and returns its absolute path. A root that has accounts stays as it is.
func prepareRoot(named string) (string, error) {
	root, err := filepath.Abs(named)
	if err != nil {
		return "", fmt.Errorf("root %s: %w", named, err)
	}
	if named == "" || root == "/" {
		return "", fmt.Errorf("boot a machine: Root is %q; name a folder of its own", named)
	}
	etc := filepath.Join(root, "etc")
	if err := os.MkdirAll(etc, 0o755); err != nil {
		return "", fmt.Errorf("prepare the root: %w", err)
	}
	if err := openWay(root); err != nil {
		return "", err
	}
	if _, err := os.Lstat(filepath.Join(etc, "passwd")); !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	for name, text := range accounts {
		mode := fs.FileMode(0o644)
		if name == "shadow" {
			mode = 0
		}
		if err := os.WriteFile(filepath.Join(etc, name), []byte(text), mode); err != nil {
			return "", fmt.Errorf("prepare the root: %w", err)
		}
	}
	home := filepath.Join(root, "home", "core")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", fmt.Errorf("prepare the root: %w", err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(home, coreID, coreID); err != nil {
			return "", fmt.Errorf("prepare the root: %w", err)
		}
	}
	return root, nil
}

// openWay lets every account walk to the root, as on a machine: Ignition writes an account's SSH keys as that account.
// Tests make their folders 0700. Only folders below the one for temporary files are opened.
func openWay(root string) error {
	top := filepath.Clean(os.TempDir())
	for dir := root; dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("prepare the root: %w", err)
		}
		if mode := info.Mode().Perm(); mode&0o001 == 0 {
			if !strings.HasPrefix(dir, top+"/") {
				return fmt.Errorf("prepare the root: %s is closed to other accounts, and Ignition writes SSH keys as their owner; choose a root below %s", dir, top)
			}
			if err := os.Chmod(dir, mode|0o011); err != nil {
				return fmt.Errorf("prepare the root: %w", err)
			}
		}
	}
	return nil
}
