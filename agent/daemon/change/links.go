// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/mcsnap/mcsnap/agent/daemon/desired"
	"github.com/mcsnap/mcsnap/agent/root"
)

// straight refuses a path whose folders lead through a symbolic link that is out of place. Links of the image are followed
// as everywhere on the node (/home to /var/home); one that an account could have made would have root write elsewhere, one
// where this daemon had made a folder was put there since, and among the folders of an account's SSH keys there is none.
func straight(node *root.Root, name string) error {
	links, err := node.Links(name)
	if err != nil {
		return err
	}
	for _, link := range links {
		if strings.Contains(name, "/.ssh/") && strings.Contains(link+"/", "/.ssh/") {
			return fmt.Errorf("%s is a symbolic link, through which an account could have root write elsewhere; remove it", link)
		}
		made, err := originalOf(node, link)
		if err != nil {
			return err
		}
		if made != nil && made.Dir {
			return fmt.Errorf("%s is a symbolic link where an update had made a folder; put the folder back", link)
		}
		for _, held := range []string{link, path.Dir(link)} {
			info, err := node.Lstat(held)
			if err != nil {
				return err
			}
			uid, _ := owner(info)
			open := info.IsDir() && info.Mode()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0
			if uid != 0 && uid != os.Geteuid() || open {
				return fmt.Errorf("%s is a symbolic link that others than root can make (%s), and through it have root write elsewhere; remove it", link, held)
			}
		}
	}
	return nil
}

// onItsDisk refuses a path that links lead to where no config may write.
func onItsDisk(node *root.Root, name string) error {
	at, err := node.Resolve(name)
	if err != nil {
		return err
	}
	if at = "/" + at; at != path.Clean(name) {
		if reason := desired.Forbidden(at); reason != "" {
			return fmt.Errorf("%s is %s by way of symbolic links: %s", name, at, reason)
		}
	}
	return nil
}
