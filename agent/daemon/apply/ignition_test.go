// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_6/types"
	"github.com/google/go-cmp/cmp"

	"github.com/mcsnap/mcsnap/e2e/lab"
	"github.com/mcsnap/mcsnap/snapshot/contents"
	"github.com/mcsnap/mcsnap/snapshot/durable/durabletest"
)

const head = `"ignition":{"version":"3.6.0"}`

// unit is the text of a unit as a JSON string.
const unit = `"[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"`

// birth is the config that the node boots with, targets those it goes to and comes back from. Together they hold every
// kind of change that is applied.
var birth = `{` + head + `,
	"storage":{"files":[
		{"path":"/etc/stays","overwrite":true,"mode":420,"contents":{"source":"data:,stays"}},
		{"path":"/etc/goes","overwrite":true,"mode":384,"contents":{"source":"data:,goes"}},
		{"path":"/etc/deep/er/goes","mode":420,"contents":{"source":"data:,deep"}},
		{"path":"/etc/image.conf","overwrite":true,"mode":420,"contents":{"source":"data:,born"}},
		{"path":"/etc/dist.log","append":[{"source":"data:,second%0A"}]},
		{"path":"/etc/made.log","append":[{"source":"data:,first%0A"}]}]},
	"systemd":{"units":[
		{"name":"a.service","enabled":true,"contents":` + unit + `,"dropins":[{"name":"10.conf","contents":"[Unit]\n"},{"name":"20.conf","contents":"[Unit]\nAfter=x.target\n"}]},
		{"name":"b.service","enabled":false,"contents":` + unit + `},
		{"name":"m.service","mask":true},
		{"name":"off.service","enabled":true},
		{"name":"echo@one.service","enabled":true},{"name":"echo@two.service","enabled":true},
		{"name":"d.timer","enabled":false}]},
	"passwd":{"users":[{"name":"core","sshAuthorizedKeys":["ssh-ed25519 AAAA one","ssh-ed25519 AAAA two"]}]}}`

var targets = map[string]string{
	"nothing of all that": `{` + head + `}`,
	"new files": strings.Replace(birth, `"files":[`, `"files":[
		{"path":"/etc/new/er/file","mode":420,"contents":{"source":"data:,new"}},
		{"path":"/usr/local/bin/tool","overwrite":true,"mode":2541,"user":{"name":"daemon"},"group":{"id":77},"contents":{"source":"data:,tool"}},
		{"path":"/etc/packed","mode":384,"contents":{"compression":"gzip","source":"`+contents.Base64(contents.Compress([]byte("packed\n")))+`"}},
		{"path":"/etc/empty"},{"path":"/opt/through-a-link","contents":{"source":"data:,x"}},
		{"path":"/etc/sysctl.d/10-dist.conf","overwrite":true,"contents":{"source":"data:,ours"}},
		{"path":"/etc/dist.conf","overwrite":true,"mode":420,"contents":{"source":"data:,ours"}},
		{"path":"/etc/dist.link","overwrite":true,"mode":384,"contents":{"source":"data:,no%20link"}},`, 1),
	"changed files": `{` + head + `,"storage":{"files":[
		{"path":"/etc/stays","overwrite":true,"mode":384,"contents":{"source":"data:,changed"}},
		{"path":"/etc/goes","overwrite":true,"mode":493,"user":{"id":1000},"group":{"name":"core"},"contents":{"source":"data:,goes"}},
		{"path":"/etc/dist.conf","overwrite":true,"mode":420,"contents":{"source":"data:,born%20again"},"append":[{"source":"data:,-and"},{"source":"data:,-more"}]},
		{"path":"/etc/dist.log","append":[{"source":"data:,third%0A"}],"mode":416},
		{"path":"/etc/made.log","append":[{"source":"data:,first%0A"},{"source":"data:,next%0A"}]}]}}`,
	"a file where a folder was": `{` + head + `,"storage":{"files":[
		{"path":"/etc/goes/below","mode":420,"contents":{"source":"data:,below"}}]}}`,
	"units come": strings.Replace(birth, `"units":[`, `"units":[
		{"name":"n.service","enabled":true,"contents":`+unit+`},{"name":"echo@three.service","enabled":true},
		{"name":"n2.service","contents":`+unit+`},{"name":"dist.service","enabled":false},`, 1),
	"units change": `{` + head + `,"systemd":{"units":[
		{"name":"a.service","enabled":true,"contents":"[Service]\nExecStart=/bin/false\n[Install]\nWantedBy=graphical.target\n","dropins":[{"name":"20.conf","contents":"[Unit]\nAfter=y.target\n"},{"name":"30.conf","contents":""}]},
		{"name":"b.service","enabled":true,"contents":` + unit + `},
		{"name":"m.service","mask":false,"enabled":true,"contents":` + unit + `},
		{"name":"off.service","enabled":false},
		{"name":"echo@one.service","enabled":false},
		{"name":"d.timer","enabled":true}]}}`,
	"units are masked": `{` + head + `,"systemd":{"units":[
		{"name":"a.service","mask":true},{"name":"dist.service","mask":true},{"name":"off.service","mask":true,"enabled":true}]}}`,
	"other keys": strings.Replace(birth, `"ssh-ed25519 AAAA one",`, `"ssh-ed25519 BBBB three",`, 1),
	"no keys":    strings.Replace(birth, `"sshAuthorizedKeys":["ssh-ed25519 AAAA one","ssh-ed25519 AAAA two"]`, `"sshAuthorizedKeys":[]`, 1),
}

// What the daemon leaves is what the real Ignition and the real systemd make of a fresh machine, whatever the way there.
func TestSameTreeAsIgnition(t *testing.T) {
	born := boot(t, birth)
	walker, err := open(t, copied(t, born), &durabletest.Disk{}, sealed(t, "rendered-worker-0", birth))
	if err != nil {
		t.Fatal(err)
	}
	defer walker.close()
	walker.adopt()
	for i, name := range slices.Sorted(maps.Keys(targets)) {
		target := sealed(t, "rendered-worker-"+string(rune('a'+i)), targets[name])
		n, err := open(t, copied(t, born), &durabletest.Disk{}, sealed(t, "rendered-worker-0", birth))
		if err != nil {
			t.Fatal(err)
		}
		n.adopt()
		if found := n.drifted(); len(found) > 0 {
			t.Errorf("a node that was just born has drifted: %v", found)
		}
		fresh := tree(t, boot(t, targets[name]), notCompared...)
		for _, on := range []*node{n, walker} { // straight from birth, and after all the others
			if err := on.update(target); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if diff := cmp.Diff(fresh, onNode(t, on.dir, fresh)); diff != "" {
				t.Errorf("%s: a fresh root (-) and this one (+):\n%s", name, diff)
			}
			if found := on.drifted(); len(found) > 0 {
				t.Errorf("%s: what was just applied has drifted: %v", name, found)
			}
		}
		if err := n.update(sealed(t, "rendered-worker-0", birth)); err != nil {
			t.Errorf("back from %s: %v", name, err)
		}
		before := tree(t, born, notCompared...)
		if diff := cmp.Diff(before, onNode(t, n.dir, before)); diff != "" {
			t.Errorf("back from %s: at birth (-) and now (+):\n%s", name, diff)
		}
		n.close()
	}
}

// notCompared are files that do not tell what a config has on disk: Ignition's report and account tools' files; the
// daemon's own; and the preset, in which Ignition leaves out a unit that is disabled already. What a preset means, the
// links, is compared.
var notCompared = []string{"/etc/.ignition-result.json", "/etc/passwd-", "/etc/shadow", "/etc/shadow-", "/etc/group-", "/etc/.pwd.lock", "/var/lib/mcsnap", "/etc/systemd/system-preset"}

// onNode is a node's tree less folders that only the node's birth needed: they are empty, and Ignition made them, so that
// nobody knows whether they are the config's.
func onNode(t *testing.T, dir string, fresh map[string]string) map[string]string {
	t.Helper()
	found := tree(t, dir, notCompared...)
	for _, name := range []string{"/etc/deep/er", "/etc/deep", "/home/core/.ssh/authorized_keys.d", "/home/core/.ssh", "/var/lib", "/usr/local/bin", "/usr/local"} {
		empty := !slices.ContainsFunc(slices.Collect(maps.Keys(found)), func(other string) bool { return path.Dir(other) == name })
		if _, both := fresh[name]; !both && empty {
			delete(found, name)
		}
	}
	return found
}

// boot is a first boot with the real Ignition and the real systemd's presets. Ignition asks a running systemd for its
// version when a config enables instances of a template. There is none, so their rules are written down here, in the
// words of Ignition.
func boot(t *testing.T, config string) string {
	t.Helper()
	var parsed types.Config
	if err := json.Unmarshal([]byte(config), &parsed); err != nil {
		t.Fatal(err)
	}
	rules := ""
	parsed.Systemd.Units = slices.DeleteFunc(parsed.Systemd.Units, func(unit types.Unit) bool {
		before, after, instance := strings.Cut(unit.Name, "@")
		if instance {
			rules += fmt.Sprintf("%s %s@%s %s\n", map[bool]string{true: "enable", false: "disable"}[*unit.Enabled], before, path.Ext(after), strings.TrimSuffix(after, path.Ext(after)))
		}
		return instance
	})
	without, err := json.Marshal(parsed)
	if err != nil {
		t.Fatal(err)
	}
	dir := image(t)
	lab.ApplyIgnition(t, without, dir)
	if rules != "" {
		at := filepath.Join(dir, "etc/systemd/system-preset/20-ignition.preset")
		text, err := os.ReadFile(at)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		// One rule for a template's instances, of which there is one action here.
		rules = strings.ReplaceAll(rules, "\nenable echo@.service", "")
		write(t, at, string(text)+rules)
	}
	presets(t, dir)
	return dir
}

func write(t *testing.T, at, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
