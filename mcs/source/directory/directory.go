// SPDX-License-Identifier: Apache-2.0

// Package directory is the source that needs no cluster: a folder laid out as OpenShift's bootstrap server reads it.
//
//	DIR/machine-pools/*.yaml                               one MachineConfigPool each
//	DIR/machine-configs/*.yaml                             one rendered MachineConfig each
//	DIR/controller-config/machine-config-controller.yaml   the ControllerConfig, optional
//
// The folder is watched. A file that is broken or half written keeps the last good state of what it holds and is
// reported once; a rendered config that disappears stays in the store.
package directory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/mcsnap/mcsnap/mcs/filewatch"
	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/snapshot"
)

const (
	poolsFolder      = "machine-pools"
	configsFolder    = "machine-configs"
	controllerFolder = "controller-config"
	controllerFile   = "machine-config-controller.yaml"
)

// Store is what a source needs of a snapshot store.
type Store interface {
	// Put has the snapshot on stable storage when it returns.
	Put(ctx context.Context, s *snapshot.Snapshot) error
}

// Config says what to read. Dir, Store and Log are needed.
type Config struct {
	// Dir is the folder with machine-pools, machine-configs and controller-config.
	Dir string
	// Pools limits the pools that are read; empty means all.
	Pools []string
	// Kubeconfig is the file that nodes get as /etc/kubernetes/kubeconfig, "" for none. It is read again on change.
	Kubeconfig string
	Store      Store
	Log        *slog.Logger
	// Timing of the watch; the zero value means the defaults.
	Timing filewatch.Timing
	// Now tells the time, for tests; nil means the clock.
	Now func() time.Time
}

// Source reads the folder. Its methods are for one goroutine.
type Source struct {
	cfg      Config
	files    map[string]*file // by path, what each file held when it was last good
	view     *source.View     // the last one that was built
	reported map[string]bool  // problems that stand and were said
}

// New returns the source; it reads nothing yet.
func New(cfg Config) *Source {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Source{cfg: cfg, files: map[string]*file{}, reported: map[string]bool{}}
}

// Run publishes the folder's state, and again after each change, until ctx ends.
func (s *Source) Run(ctx context.Context, publish func(*source.View)) error {
	update := func() {
		if view, changed := s.Load(ctx); changed {
			publish(view)
		}
	}
	update()
	watched := []string{s.cfg.Dir}
	for _, folder := range []string{poolsFolder, configsFolder, controllerFolder} {
		watched = append(watched, filepath.Join(s.cfg.Dir, folder))
	}
	if s.cfg.Kubeconfig != "" {
		watched = append(watched, filepath.Dir(s.cfg.Kubeconfig))
	}
	return filewatch.Watch(ctx, s.cfg.Log, watched, s.cfg.Timing, update)
}

// Load reads the folder once and returns its state and whether it differs from what the previous call returned. What
// was wrong with files is logged, once as long as it stands, and found in Problems.
func (s *Source) Load(ctx context.Context) (*source.View, bool) {
	problems := map[string]bool{}
	view := &source.View{
		Pools:    map[string]source.Pool{},
		Rendered: map[string]snapshot.Digest{},
	}
	broken := s.loadConfigs(ctx, view, s.loadPools(view, problems), problems)
	s.loadController(view, problems)
	s.loadKubeconfig(view, problems)
	for name, pool := range view.Pools {
		selected := source.Select(pool)
		if why, ok := broken[selected]; ok && selected != "" && pool.Problem == "" {
			pool.Problem = why
		}
		if _, here := view.Rendered[selected]; !here {
			pool.Missing = broken[nameless]
		}
		view.Pools[name] = pool
	}
	if ctx.Err() != nil { // a store that was interrupted says nothing about the folder
		return s.view, false
	}
	s.report(problems)
	if s.view != nil && reflect.DeepEqual(s.view, view) {
		return s.view, false
	}
	s.view = view
	return view, true
}

// Problems returns what the last Load found wrong, one line each.
func (s *Source) Problems() []string { return slices.Sorted(maps.Keys(s.reported)) }

// report says what is newly wrong and what has been mended.
func (s *Source) report(problems map[string]bool) {
	for _, problem := range slices.Sorted(maps.Keys(problems)) {
		if !s.reported[problem] {
			s.cfg.Log.Error("the folder has a problem; the last good state stands", "folder", s.cfg.Dir, "problem", problem)
		}
	}
	for _, problem := range slices.Sorted(maps.Keys(s.reported)) {
		if !problems[problem] {
			s.cfg.Log.Info("a problem is gone", "problem", problem)
		}
	}
	s.reported = problems
}

// loadPools fills view.Pools and returns which pool names each rendered config.
func (s *Source) loadPools(view *source.View, problems map[string]bool) (namedBy map[string]string) {
	namedBy = map[string]string{}
	from := map[string]string{}
	for _, f := range s.scan(poolsFolder, problems, func(f *file) (err error) {
		f.pool, err = readPool(f.data)
		return err
	}) {
		pool := f.pool
		if !f.good { // a pool that could never be read still deserves an answer that says why
			if f.foreign || !dnsSubdomain.MatchString(f.stem()) {
				continue // but this is none
			}
			pool = source.Pool{Name: f.stem()}
		}
		if f.problem != "" {
			pool.Problem = f.problem
		}
		if len(s.cfg.Pools) > 0 && !slices.Contains(s.cfg.Pools, pool.Name) {
			continue
		}
		if first, taken := from[pool.Name]; taken {
			if f.good {
				problems[fmt.Sprintf("%s: holds pool %s, as %s does; remove one", f.name, pool.Name, first)] = true
			}
			continue
		}
		from[pool.Name] = f.name
		view.Pools[pool.Name] = pool
		for _, name := range []string{pool.Status, pool.Spec} {
			if name != "" {
				namedBy[name] = pool.Name
			}
		}
	}
	return namedBy
}

// nameless stands for the name of a config that cannot be read so far as to know its name.
const nameless = ""

// loadConfigs puts each rendered config into the store, fills view.Rendered and returns, by name, why a config that
// is in the folder cannot be used.
func (s *Source) loadConfigs(ctx context.Context, view *source.View, namedBy map[string]string, problems map[string]bool) (broken map[string]string) {
	broken = map[string]string{}
	from := map[string]string{}
	for _, f := range s.scan(configsFolder, problems, func(f *file) error { return s.capture(ctx, f, namedBy) }) {
		if f.problem != "" {
			broken[cmp.Or(f.holds, f.config, f.stem())] = f.problem
			if f.holds == "" && f.config == "" && !f.foreign {
				broken[nameless] = f.problem
			}
		}
		if f.digest == "" {
			continue
		}
		if first, taken := from[f.config]; taken && view.Rendered[f.config] != f.digest {
			problems[fmt.Sprintf("%s: holds %s with other content than %s; remove one", f.name, f.config, first)] = true
			continue
		}
		from[f.config] = f.name
		view.Rendered[f.config] = f.digest
	}
	return broken
}

// capture seals one file of machine-configs and puts it into the store.
func (s *Source) capture(ctx context.Context, f *file, namedBy map[string]string) error {
	r, err := readRendered(f.data)
	if err != nil {
		return err
	}
	f.holds = r.name
	pool := r.pool(namedBy)
	if pool == "" { // not a rendered config: what it was rendered from may lie in the folder too
		f.config, f.digest = r.name, ""
		return nil
	}
	sealed, err := snapshot.Seal(f.data, pool)
	if err != nil {
		return err
	}
	if err := checkIgnition(sealed.IgnitionConfig()); err != nil {
		return err
	}
	if err := s.cfg.Store.Put(ctx, sealed); err != nil {
		f.retry = true
		return fmt.Errorf("cannot be stored: %w", err)
	}
	f.config, f.digest = sealed.Name(), sealed.Digest()
	return nil
}

func (s *Source) loadController(view *source.View, problems map[string]bool) {
	for _, f := range s.scan(controllerFolder, problems, func(f *file) (err error) {
		f.controller, err = readController(f.data)
		return err
	}) {
		if filepath.Base(f.path) == controllerFile {
			view.Controller = f.controller
		}
	}
}

func (s *Source) loadKubeconfig(view *source.View, problems map[string]bool) {
	if s.cfg.Kubeconfig == "" {
		return
	}
	f := s.take(s.cfg.Kubeconfig, func(f *file) (err error) {
		f.expires, err = source.CheckKubeconfig(f.data)
		if err == nil {
			f.kubeconfig = f.data
		}
		return err
	})
	if f.problem != "" {
		problems[f.problem] = true
	}
	view.Kubeconfig, view.CredentialsExpire = f.kubeconfig, f.expires
	problem, warning := source.JudgeExpiry(f.expires, s.cfg.Now())
	switch {
	case f.kubeconfig == nil:
		view.CredentialProblem = "no credentials for nodes: " + f.problem
	case problem != "":
		view.CredentialProblem = fmt.Sprintf("%s: %s", f.name, problem)
		problems[view.CredentialProblem] = true
	case warning != "" && !f.warned:
		f.warned = true
		s.cfg.Log.Warn("credentials for nodes end soon", "file", f.path, "warning", warning)
	}
}

var errEmpty = errors.New("is empty; was it written half? Write a new file and rename it into place")
