// SPDX-License-Identifier: Apache-2.0

package served_test

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsnap/mcsnap/e2e/lab"
	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
	"github.com/mcsnap/mcsnap/systemd"
)

// needDisks are the configs that no scratch root can be given.
var needDisks = []string{"disks", "filesystems", "mount-options", "luks", "luks-discard", "tang", "tang-3.4", "cex"}

// needInternet is a config whose source cannot be moved to the test's own server, because a proxy stands before it.
var needInternet = []string{"proxy"}

// olds are the Ignitions that read one version and nothing above: what 2.26 makes of a body says little about them.
var olds = map[specver.Version]lab.Old{
	specver.V2_2: lab.Ignition035, specver.V3_0: lab.Ignition221, specver.V3_1: lab.Ignition260,
}

// added is what everything adds, in the words of the node.
var added = []string{
	compose.AnnotationsPath, compose.EncapsulatedPath, compose.ContentPath, compose.KubeconfigPath, compose.AgentConfigPath,
	snapshot.Path, systemd.AgentPath, "/etc/kubernetes/kubelet-ca.crt", "/etc/systemd/system/" + systemd.FirstbootName,
}

// preset names the units to enable; the first-boot unit is one more of them.
const preset = "/etc/systemd/system-preset/20-ignition.preset"

var agent = []byte("\x7fELF the agent")

func TestEveryConfigOnEveryIgnition(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers := map[string][]byte{
			"/plain": []byte("from elsewhere\n"), "/gzip": contents.Compress([]byte("from elsewhere\n")),
			"/agent": agent, "/agent.gz": contents.Compress(agent),
		}
		if text, ok := answers[r.URL.Path]; ok {
			w.Write(text)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	for _, file := range configs(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if slices.Contains(needDisks, name) || slices.Contains(needInternet, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := snapshot.Seal(bytes.ReplaceAll(rendered, []byte("http://remote.invalid"), []byte(server.URL)), "worker")
			if err != nil {
				t.Fatal(err)
			}
			own, err := compose.Own(s)
			if err != nil {
				t.Fatal(err)
			}
			root := image(t)
			original := lab.ApplyIgnition(t, s.IgnitionConfig(), root)
			want := tree(t, root)
			applied := 0
			for _, v := range specver.All {
				body, err := compose.Compose(everything(s, server.URL), v)
				var ie *specver.InexpressibleError
				if own.Less(v) || errors.As(err, &ie) {
					continue // mcs/compose has the list of these
				}
				if err != nil {
					t.Fatal(err)
				}
				if v != specver.V2_2 {
					root := image(t)
					booted := lab.ApplyIgnition(t, body.JSON, root)
					compare(t, v.String(), want, tree(t, root), s)
					if !v.Less(specver.V3_3) && !slices.Equal(booted.KernelArgs, original.KernelArgs) {
						t.Errorf("%s: kernel arguments %q, the original has %q", v, booted.KernelArgs, original.KernelArgs)
					}
				}
				if old, ok := olds[v]; ok {
					doc, root := body.JSON, image(t)
					if !old.Accounts {
						doc = withoutAccounts(t, doc)
					}
					old.Apply(t, doc, root)
					compare(t, v.String()+" on its own Ignition", forOld(want), forOld(tree(t, root)), s)
				}
				applied++
			}
			if applied == 0 {
				t.Error("no version of this config was applied")
			}
		})
	}
}

// compare holds a served root against the original's: the same but for what is added.
func compare(t *testing.T, v string, want, got map[string]string, s *snapshot.Snapshot) {
	t.Helper()
	want, got = maps.Clone(want), maps.Clone(got)
	ours := "enable " + systemd.FirstbootName + "\n"
	if !strings.Contains(got[preset], ours) {
		t.Errorf("%s: the first-boot unit is not enabled: %s", v, got[preset])
	}
	got[preset] = strings.Replace(got[preset], ours, "", 1)
	// A config may disable the unit of our name that it brings; ours replaces it, that line included.
	want[preset] = strings.Replace(want[preset], "dis"+strings.TrimPrefix(ours, "en"), "", 1)
	sealed := got[snapshot.Path]
	if !strings.HasPrefix(sealed, "-rw------- 0:0 names=1 ") || !strings.Contains(sealed, string(s.Digest())) {
		t.Errorf("%s: the snapshot is %.200s", v, sealed)
	}
	if a := got[systemd.AgentPath]; !strings.HasPrefix(a, "-rwxr-xr-x 0:0 ") || !strings.Contains(a, "the agent") {
		t.Errorf("%s: the agent is %q", v, a)
	}
	for _, p := range added {
		if _, ok := got[p]; !ok {
			t.Errorf("%s: %s is missing", v, p)
		}
		delete(got, p)
		delete(want, p)
		for dir := filepath.Dir(p); dir != "/"; dir = filepath.Dir(dir) { // folders made for what is added
			if _, rendered := want[dir]; !rendered && got[dir] == "drwxr-xr-x 0:0" {
				delete(got, dir)
			}
		}
	}
	if want[preset] == "" && got[preset] == "" { // then the rendered config enables nothing
		for _, of := range []map[string]string{want, got} {
			delete(of, preset)
			delete(of, filepath.Dir(preset))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -original +served\n%s", v, diff)
	}
}

// withoutAccounts is a body that the oldest Ignitions can apply on a scratch root: they run the root's own programs to find
// accounts. mcs/compose has the parser's word on the section.
func withoutAccounts(t *testing.T, body []byte) []byte {
	t.Helper()
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	delete(doc, "passwd")
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// forOld is a tree less what Ignitions do differently with the same words: the passwd section, and units to disable, for
// which 2.26 writes a line only when the image enables them.
func forOld(tree map[string]string) map[string]string {
	tree = maps.Clone(tree)
	maps.DeleteFunc(tree, func(p, _ string) bool {
		return strings.HasPrefix(p, "/home/core/") || slices.ContainsFunc([]string{"passwd", "shadow", "group", "gshadow", ".pwd.lock"},
			func(name string) bool { return strings.HasPrefix(p, "/etc/"+name) })
	})
	if lines, ok := tree[preset]; ok {
		tree[preset] = regexp.MustCompile(`(?m)^disable .*\n`).ReplaceAllString(lines, "")
	}
	return tree
}

func everything(s *snapshot.Snapshot, server string) compose.Inputs {
	sum := sha512.Sum512(agent)
	return compose.Inputs{
		Snapshot:          s,
		Kubeconfig:        []byte("apiVersion: v1\nkind: Config\n"),
		Files:             []compose.File{{Path: "/etc/kubernetes/kubelet-ca.crt", Contents: []byte("new\n"), Mode: 0o644, Reason: "controllerconfig"}},
		Agents:            []compose.Agent{{Arch: "amd64", URL: server + "/agent", SHA512: hex.EncodeToString(sum[:])}},
		AgentConfig:       []byte("apiVersion: mcsnap/v1\n"),
		CompatContentFile: true,
	}
}

func configs(t *testing.T) (files []string) {
	t.Helper()
	for _, pattern := range []string{
		"../../mcs/compose/testdata/*.yaml",
		"../example/cluster/machine-configs/*.yaml",
		"../../../shared/fixtures/openshift-bootstrap/machine-configs/*.yaml",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 25 {
		t.Fatalf("only %d configs found", len(files))
	}
	return files
}
