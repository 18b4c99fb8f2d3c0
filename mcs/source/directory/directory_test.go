// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/mcs/filewatch"
	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/snapshot"
)

// captured is a store that only counts what was put into it.
type captured map[snapshot.Digest]*snapshot.Snapshot

func (c captured) Put(_ context.Context, s *snapshot.Snapshot) error {
	c[s.Digest()] = s
	return nil
}

const (
	nameA = "rendered-worker-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	nameB = "rendered-worker-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func poolYAML(name, spec, status string, updated int) string {
	return fmt.Sprintf(`apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: %s}
spec: {configuration: {name: %s}, fieldOfNextYear: {x: 1}}
status: {configuration: {name: %s}, updatedMachineCount: %d}
`, name, spec, status, updated)
}

func configYAML(name, pool, path string) string {
	return fmt.Sprintf(`apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: %s
  ownerReferences: [{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, name: %s, uid: ""}]
spec:
  config:
    ignition: {version: 3.4.0}
    storage: {files: [{path: %s, mode: 420, contents: {source: "data:,x"}}]}
`, name, pool, path)
}

// folder is a bootstrap folder under test, with its source.
type folder struct {
	t      *testing.T
	dir    string
	log    bytes.Buffer
	store  captured
	source *Source
	now    time.Time
}

func newFolder(t *testing.T, change func(*Config)) *folder {
	f := &folder{t: t, dir: t.TempDir(), store: captured{}, now: time.Unix(1_800_000_000, 0)}
	cfg := Config{
		Dir: f.dir, Store: f.store, Log: slog.New(slog.NewTextHandler(&f.log, nil)),
		Now: func() time.Time { return f.now },
	}
	if change != nil {
		change(&cfg)
	}
	f.source = New(cfg)
	return f
}

func (f *folder) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *folder) load() *source.View {
	view, _ := f.source.Load(context.Background())
	return view
}

// said counts the lines of the log with all the given words in them, and forgets the log.
func (f *folder) said(words ...string) (lines int) {
	for line := range strings.Lines(f.log.String()) {
		found := true
		for _, word := range words {
			found = found && strings.Contains(line, word)
		}
		if found {
			lines++
		}
	}
	f.log.Reset()
	return lines
}

func TestReadsTheFolder(t *testing.T) {
	f := newFolder(t, nil)
	f.write("machine-pools/worker.yaml", poolYAML("worker", nameB, nameA, 1))
	f.write("machine-configs/"+nameA+".yaml", configYAML(nameA, "worker", "/etc/a"))
	f.write("machine-configs/"+nameB+".yaml", configYAML(nameB, "worker", "/etc/b"))
	f.write("machine-configs/99-worker-ssh.yaml", strings.ReplaceAll(configYAML("99-worker-ssh", "worker", "/etc/c"), "MachineConfigPool", "Other"))
	f.write("machine-configs/.swap.yaml", "not read")
	f.write("machine-configs/notes.txt", "not read")
	f.write("controller-config/machine-config-controller.yaml", `apiVersion: machineconfiguration.openshift.io/v1
kind: ControllerConfig
spec: {kubeAPIServerServingCAData: S1VCRQ==, infra: {status: {apiServerInternalURI: "https://api-int:6443"}}}
`)
	view := f.load()
	if got := view.Pools["worker"]; got != (source.Pool{Name: "worker", Spec: nameB, Status: nameA, Updated: 1}) {
		t.Errorf("pool = %+v", got)
	}
	if len(view.Rendered) != 2 || len(f.store) != 2 {
		t.Errorf("%d rendered configs in the view, %d in the store, want 2: the ssh config is not a rendered one", len(view.Rendered), len(f.store))
	}
	for name, digest := range view.Rendered {
		if s := f.store[digest]; s == nil || s.Name() != name || s.Pool() != "worker" {
			t.Errorf("the store has %v for %s", s, name)
		}
	}
	if c := view.Controller; c == nil || string(c.KubeletCA) != "KUBE" || c.InternalAPIServer != "https://api-int:6443" {
		t.Errorf("controller = %+v", c)
	}
	if problems := f.source.Problems(); len(problems) != 0 {
		t.Errorf("problems: %q", problems)
	}
	if _, changed := f.source.Load(context.Background()); changed {
		t.Error("a folder at rest gives a second view")
	}
}

// Field case 35 (one bad config marks one pool) and "a half-written file keeps the last good state and says so once".
func TestABrokenFileKeepsTheLastGoodState(t *testing.T) {
	good := configYAML(nameA, "worker", "/etc/a")
	pool := poolYAML("worker", nameA, nameA, 0)
	for _, c := range []struct{ name, file, text, want string }{
		{"half a config", "machine-configs/a.yaml", good[:len(good)-60], "machine-configs/a.yaml"},
		{"an empty config", "machine-configs/a.yaml", "", "is empty"},
		{"not an object", "machine-configs/a.yaml", "{{{", "a.yaml"},
		{"two documents", "machine-configs/a.yaml", good + "---\n" + good, "several YAML documents"},
		{"the wrong kind", "machine-configs/a.yaml", strings.Replace(good, "kind: MachineConfig\n", "kind: ConfigMap\n", 1), "ConfigMap"},
		{"invalid Ignition", "machine-configs/a.yaml", strings.Replace(good, "path: /etc/a", "path: etc/a", 1), "path not absolute"},
		{"Ignition of next year", "machine-configs/a.yaml", strings.Replace(good, "3.4.0", "3.99.0", 1), "not valid Ignition"},
		{"a duplicate key", "machine-configs/a.yaml", good + "spec: {}\n", "a.yaml"},
		{"half a pool", "machine-pools/worker.yaml", pool[:100], "machine-pools/worker.yaml"},
		{"a pool without a name", "machine-pools/worker.yaml", strings.Replace(pool, "name: worker", "other: x", 1), "metadata.name"},
		{"a pool of the wrong type", "machine-pools/worker.yaml", strings.Replace(pool, "Count: 0", "Count: many", 1), "status.updatedMachineCount is text, want a whole number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFolder(t, nil)
			f.write("machine-configs/a.yaml", good)
			f.write("machine-pools/worker.yaml", pool)
			f.write("machine-configs/m.yaml", configYAML(nameB, "infra", "/etc/b"))
			f.write("machine-pools/infra.yaml", poolYAML("infra", nameB, nameB, 0))
			first := f.load()
			f.said()

			f.write(c.file, c.text)
			second := f.load()
			f.load()
			if got := f.said("level=ERROR", c.want); got != 1 {
				t.Errorf("the problem was said %d times, want once; problems: %q", got, f.source.Problems())
			}
			if second.Rendered[nameA] != first.Rendered[nameA] || second.Pools["worker"].Status != nameA {
				t.Errorf("the last good state is gone: %+v", second)
			}
			if !strings.Contains(second.Pools["worker"].Problem, c.want) || second.Pools["infra"] != first.Pools["infra"] {
				t.Errorf("problems = %q and %q, want one at worker alone", second.Pools["worker"].Problem, second.Pools["infra"].Problem)
			}

			f.write("machine-configs/a.yaml", good)
			f.write("machine-pools/worker.yaml", pool)
			if third := f.load(); third.Pools["worker"].Problem != "" || f.said("is gone") != 1 {
				t.Errorf("the mended file left %+v", third.Pools["worker"])
			}
		})
	}
}

func TestProblemsOfTheFolder(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(f *folder)
		want  string
	}{
		{"two files hold one pool", func(f *folder) {
			f.write("machine-pools/a.yaml", poolYAML("worker", nameA, nameA, 0))
			f.write("machine-pools/b.yaml", poolYAML("worker", nameB, nameB, 0))
		}, "b.yaml: holds pool worker, as"},
		{"two files hold one name with other content", func(f *folder) {
			f.write("machine-configs/a.yaml", configYAML(nameA, "worker", "/etc/a"))
			f.write("machine-configs/b.yaml", configYAML(nameA, "worker", "/etc/b"))
		}, "b.yaml: holds " + nameA},
		{"a file that is a folder", func(f *folder) { f.write("machine-pools/a.yaml/x", "") }, "not a regular file"},
		{"a file that cannot be followed", func(f *folder) {
			f.write("machine-pools/x", "")
			_ = os.Symlink("nowhere", filepath.Join(f.dir, "machine-pools", "a.yaml"))
		}, "cannot be read (no such file or directory)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFolder(t, nil)
			c.write(f)
			f.load()
			f.load()
			if got := f.said("level=ERROR", c.want); got != 1 {
				t.Errorf("said %d times; problems: %q", got, f.source.Problems())
			}
		})
	}
}

// What is no pool takes nothing from the pools: it is reported, and no pool is made up for it.
func TestAStrayFileIsNoPool(t *testing.T) {
	f := newFolder(t, nil)
	f.write("machine-pools/kustomization.yaml", "kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1\n")
	f.write("machine-pools/My Notes.yaml", "{{{")
	if view := f.load(); len(view.Pools) != 0 || f.said("level=ERROR", "problem") != 2 {
		t.Errorf("pools = %v", view.Pools)
	}
}

// Where the folder lies on the server is not told to clients.
func TestProblemsNameFilesWithinTheFolder(t *testing.T) {
	f := newFolder(t, nil)
	f.write("machine-pools/worker.yaml", "{{{")
	if problem := f.load().Pools["worker"].Problem; !strings.HasPrefix(problem, "machine-pools/worker.yaml: ") {
		t.Errorf("problem = %q", problem)
	}
}

// A pool that was never readable is known by its file's name, so that its nodes get a reason and not "unknown pool".
func TestAPoolBrokenFromTheStart(t *testing.T) {
	f := newFolder(t, nil)
	f.write("machine-pools/worker.yaml", "{{{")
	if p := f.load().Pools["worker"]; !strings.Contains(p.Problem, "worker.yaml") {
		t.Errorf("pool = %+v", p)
	}
}

func TestConfigsThatLeaveTheFolderStayInTheStore(t *testing.T) {
	f := newFolder(t, nil)
	f.write("machine-pools/worker.yaml", poolYAML("worker", nameA, nameA, 0))
	f.write("machine-configs/a.yaml", configYAML(nameA, "worker", "/etc/a"))
	f.load()
	if err := os.Remove(filepath.Join(f.dir, "machine-configs/a.yaml")); err != nil {
		t.Fatal(err)
	}
	if view := f.load(); len(view.Rendered) != 0 || len(f.store) != 1 || view.Pools["worker"].Problem != "" {
		t.Errorf("view %+v, store %d", view, len(f.store))
	}
}

// A folder that goes away (a volume that is being mounted anew) is no order to forget its pools.
func TestAFolderThatIsGone(t *testing.T) {
	f := newFolder(t, nil)
	f.write("machine-pools/worker.yaml", poolYAML("worker", nameA, nameA, 0))
	f.write("machine-configs/a.yaml", configYAML(nameA, "worker", "/etc/a"))
	f.load()
	folder := filepath.Join(f.dir, "machine-pools")
	if err := os.Rename(folder, folder+".away"); err != nil {
		t.Fatal(err)
	}
	if view := f.load(); view.Pools["worker"].Status != nameA || f.said("level=ERROR", "is gone") != 1 {
		t.Errorf("pools = %v", view.Pools)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if view := f.load(); len(view.Pools) != 0 {
		t.Errorf("an emptied folder has pools: %v", view.Pools)
	}
}

func TestPoolsLimit(t *testing.T) {
	f := newFolder(t, func(c *Config) { c.Pools = []string{"master"} })
	f.write("machine-pools/worker.yaml", poolYAML("worker", nameA, nameA, 0))
	f.write("machine-pools/master.yaml", poolYAML("master", nameB, nameB, 0))
	if view := f.load(); len(view.Pools) != 1 || view.Pools["master"].Name == "" {
		t.Errorf("pools = %v", view.Pools)
	}
}

// Field case 27: a folder that is filled later is waited for, not refused.
func TestRunTakesUpWhatAppears(t *testing.T) {
	f := newFolder(t, func(c *Config) {
		c.Timing = filewatch.Timing{Quiet: 10 * time.Millisecond, Poll: 100 * time.Millisecond}
	})
	views := make(chan *source.View, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- f.source.Run(ctx, func(v *source.View) { views <- v }) }()
	if first := <-views; len(first.Pools) != 0 {
		t.Errorf("an empty folder gave %v", first.Pools)
	}
	f.write("machine-pools/worker.yaml", poolYAML("worker", nameA, nameA, 0))
	f.write("machine-configs/a.yaml", configYAML(nameA, "worker", "/etc/a"))
	for view := range views {
		if view.Rendered[nameA] != "" && view.Pools["worker"].Status == nameA {
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
