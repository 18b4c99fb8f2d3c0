// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_6/types"

	"github.com/mcsnap/mcsnap/agent/root"
)

// Accounts are a node's users and groups, from its own files: owners in a config may be names.
type Accounts struct {
	Users  map[string]User
	Groups map[string]int
}

// User is a line of passwd.
type User struct {
	UID, GID int
	Home     string
}

const maxAccounts = 8 << 20

// ReadAccounts reads /etc/passwd and /etc/group and, below an ostree, those of /usr/lib.
func ReadAccounts(node *root.Root) (Accounts, error) {
	accounts := Accounts{Users: map[string]User{}, Groups: map[string]int{}}
	for _, dir := range []string{"/usr/lib", "/etc"} { // what stands in /etc wins
		err := lines(node, dir+"/passwd", func(fields []string) {
			uid, errU := strconv.Atoi(at(fields, 2))
			gid, errG := strconv.Atoi(at(fields, 3))
			if errU == nil && errG == nil {
				accounts.Users[fields[0]] = User{uid, gid, at(fields, 5)}
			}
		})
		if err != nil {
			return accounts, err
		}
		err = lines(node, dir+"/group", func(fields []string) {
			if gid, err := strconv.Atoi(at(fields, 2)); err == nil {
				accounts.Groups[fields[0]] = gid
			}
		})
		if err != nil {
			return accounts, err
		}
	}
	return accounts, nil
}

func lines(node *root.Root, name string, do func(fields []string)) error {
	text, err := node.ReadFile(name, maxAccounts)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		do(strings.Split(strings.TrimSpace(line), ":"))
	}
	return err
}

func at(fields []string, i int) string {
	if i < len(fields) {
		return fields[i]
	}
	return ""
}

func (a Accounts) user(user types.NodeUser) (*int, error) {
	if user.ID != nil || user.Name == nil || *user.Name == "" {
		return user.ID, nil
	}
	account, known := a.Users[*user.Name]
	if !known {
		return nil, fmt.Errorf("its owner %q is no user of this node", *user.Name)
	}
	return &account.UID, nil
}

func (a Accounts) group(group types.NodeGroup) (*int, error) {
	if group.ID != nil || group.Name == nil || *group.Name == "" {
		return group.ID, nil
	}
	gid, known := a.Groups[*group.Name]
	if !known {
		return nil, fmt.Errorf("its group %q is no group of this node", *group.Name)
	}
	return &gid, nil
}

// verified tells whether content has the hash that a config gives, such as sha512-0123….
func verified(content []byte, hash string) bool {
	function, want, _ := strings.Cut(hash, "-")
	var got string
	switch function {
	case "sha256":
		sum := sha256.Sum256(content)
		got = hex.EncodeToString(sum[:])
	case "sha512":
		sum := sha512.Sum512(content)
		got = hex.EncodeToString(sum[:])
	}
	return got != "" && strings.EqualFold(got, want)
}
