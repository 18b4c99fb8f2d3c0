// SPDX-License-Identifier: Apache-2.0

// Package cluster is the source that watches an API server: MachineConfigPools, MachineConfigs, the ControllerConfig
// and the CA bundle for nodes.
//
// It captures every rendered config: on its first sight the config is sealed and in the store, on stable storage, before
// the next event is read and its content forgotten (docs/capture.md says why nothing is missed). It writes nothing to
// the cluster and holds nothing in it: no finalizers, no owner references, no leases.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mcsnap/mcsnap/mcs/filewatch"
	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// Config says which cluster to watch and what nodes are to be given. REST, Store, State and Log are needed.
type Config struct {
	// REST is the API server and who we are to it.
	REST *rest.Config
	// Store takes the rendered configs.
	Store store.Store
	// State is the folder that outlives a restart: what the cluster said last is kept there, so that nodes can be
	// answered when the API server is away at start. It holds no secrets.
	State string
	// Log is told of what changes and of what fails, once each.
	Log *slog.Logger

	// TokenDir is a folder with the files token and ca.crt: the credentials that nodes join with. Empty with
	// NoCredentials.
	TokenDir string
	// NoCredentials has configs served without a kubeconfig.
	NoCredentials bool
	// CABundle names the ConfigMap, as NAMESPACE/NAME, whose ca-bundle.crt is newer than ca.crt where both exist; "" for
	// none.
	CABundle string
	// APIServer is the URL under which nodes reach the API server; "" takes the ControllerConfig's.
	APIServer string
	// ForceSpec names pools whose new nodes get spec.configuration although no machine has proved it yet.
	ForceSpec []string
	// Nodes has the addresses of Node objects watched too, for Joined.
	Nodes bool

	// Patience is how long the API server may take at start before nodes are answered from what is remembered. Default
	// 1 s.
	Patience time.Duration
	// Recheck is how often the store is asked whether it still has what the cluster has. Default 30 s.
	Recheck time.Duration
	// ListPatience is how long a list that the API server streams may say nothing before it is read in pages. Default 10 s.
	ListPatience time.Duration
	// PageSize is how many configs one request lists where the API server does not stream. Default 8.
	PageSize int
	// Timing of the watch on TokenDir.
	Timing filewatch.Timing
	// Now tells the time; nil means the clock.
	Now func() time.Time
}

// Source watches a cluster. See [New].
type Source struct {
	cfg Config
	api *api
	log *slog.Logger

	dirty chan struct{} // has a value when the view may have changed

	joined joined

	mu         sync.Mutex
	pools      map[string]source.Pool
	live       map[string]live      // rendered configs that exist, by name
	broken     map[string]string    // why a rendered config that exists cannot be captured
	retry      map[string]time.Time // names to look at again, and not before when
	controller *source.ControllerConfig
	bundle     []byte
	version    string            // of the MachineConfigs, up to which all is captured
	waiting    map[string]bool   // kinds whose first list is not complete
	away       map[string]string // by kind, why it cannot be watched
	warned     string            // what was said last about credentials
	caSource   string            // see CASource
	remembered []byte            // what the file of what is remembered holds
	forgetful  bool              // it could not be written, which was said
	safe       string            // the version in it
	catching   bool              // catchUp has not come to its end

	last *source.View // only Run's goroutine uses it
}

// live is a rendered config that exists in the cluster.
type live struct {
	digest       snapshot.Digest
	uid, version string
}

// New returns a source; it connects to nothing yet.
func New(cfg Config) (*Source, error) {
	orDefault := func(d *time.Duration, standard time.Duration) {
		if *d <= 0 {
			*d = standard
		}
	}
	orDefault(&cfg.Patience, time.Second)
	orDefault(&cfg.Recheck, 30*time.Second)
	orDefault(&cfg.ListPatience, 10*time.Second)
	if cfg.PageSize <= 0 {
		cfg.PageSize = 8
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if !cfg.NoCredentials && cfg.TokenDir == "" {
		return nil, errors.New("no folder with the credentials for nodes is given; name it, or ask for none explicitly")
	}
	api, err := newAPI(cfg.REST)
	if err != nil {
		return nil, err
	}
	return &Source{
		cfg: cfg, api: api, log: cfg.Log, dirty: make(chan struct{}, 1),
		pools: map[string]source.Pool{}, live: map[string]live{}, broken: map[string]string{},
		retry: map[string]time.Time{}, waiting: map[string]bool{}, away: map[string]string{},
	}, nil
}

var _ source.Source = (*Source)(nil)

// touch has the view made again.
func (s *Source) touch() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// kinds returns what is watched.
func (s *Source) kinds() (map[string]*watcher, error) {
	const group = "/apis/machineconfiguration.openshift.io/v1/"
	named := func(name string) string { return "metadata.name=" + name }
	kinds := map[string]*watcher{
		kindPools:      {at: group + "machineconfigpools", follower: poolFollower{s}},
		kindConfigs:    {at: group + "machineconfigs", follower: configFollower{s}},
		kindController: {at: group + "controllerconfigs", selector: named("machine-config-controller"), follower: controllerFollower{s}},
	}
	if s.cfg.CABundle != "" {
		namespace, name, err := BundleName(s.cfg.CABundle)
		if err != nil {
			return nil, err
		}
		kinds[kindBundle] = &watcher{at: "/api/v1/namespaces/" + namespace + "/configmaps", selector: named(name), follower: bundleFollower{s}}
	}
	if s.cfg.Nodes {
		kinds[kindNodes] = &watcher{at: "/api/v1/nodes", follower: nodeFollower{s}}
	}
	for kind, w := range kinds {
		w.api, w.log, w.pageSize, w.patience = s.api, s.log, s.cfg.PageSize, s.cfg.ListPatience
		w.connected = func(err error) { s.connected(kind, err) }
		s.waiting[kind] = true
	}
	return kinds, nil
}

// BundleName takes NAMESPACE/NAME of a ConfigMap apart.
func BundleName(bundle string) (namespace, name string, err error) {
	namespace, name, _ = strings.Cut(bundle, "/")
	if !dnsName.MatchString(namespace) || !dnsName.MatchString(name) {
		return "", "", fmt.Errorf("%.100q is no ConfigMap; write NAMESPACE/NAME", bundle)
	}
	return namespace, name, nil
}

// dnsName is how Kubernetes names namespaces and ConfigMaps (RFC 1123).
var dnsName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

const (
	kindPools      = "machineconfigpools"
	kindConfigs    = "machineconfigs"
	kindController = "controllerconfigs"
	kindBundle     = "configmaps"
)

// Run watches and publishes until ctx ends.
func (s *Source) Run(ctx context.Context, publish func(*source.View)) error {
	kinds, err := s.kinds()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()

	remembered := s.recall(ctx)
	catchUp := remembered != nil && remembered.Version != ""
	if catchUp { // before anything is remembered anew
		s.safe, s.catching = remembered.Version, true
	}
	for _, w := range kinds {
		all.Go(func() { w.run(ctx) })
	}
	if catchUp {
		all.Go(func() { s.catchUp(ctx, remembered.Version) })
	}
	if s.cfg.TokenDir != "" {
		all.Go(func() { _ = filewatch.Watch(ctx, s.log, []string{s.cfg.TokenDir}, s.cfg.Timing, s.touch) })
	}
	recheck := time.NewTicker(s.cfg.Recheck)
	defer recheck.Stop()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	patience := time.NewTimer(s.cfg.Patience)
	defer patience.Stop()
	for {
		select {
		case <-ctx.Done():
			s.remember()
			return nil
		case <-patience.C:
			if s.incomplete() != "" && remembered != nil {
				s.log.Warn("the cluster has not answered yet; serving what it said last", "missing", s.incomplete(), "pools", len(remembered.Pools))
				s.resume(remembered)
				s.publish(ctx, publish)
			}
		case <-recheck.C:
			s.recheck(ctx)
			s.remember()
		case <-again.C:
			if s.fetchNamed(ctx) {
				s.publish(ctx, publish)
			}
		case <-s.dirty:
			if s.incomplete() != "" && s.last == nil {
				continue
			}
			s.fetchNamed(ctx)
			s.publish(ctx, publish)
		}
	}
}

// publish makes the view and passes it on if it says anything new.
func (s *Source) publish(ctx context.Context, publish func(*source.View)) {
	view := s.view()
	if ctx.Err() != nil || s.last != nil && reflect.DeepEqual(view, s.last) {
		return
	}
	s.last = view
	publish(view)
	s.remember()
}

// incomplete names a kind whose first list is not complete, "" when all are.
func (s *Source) incomplete() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for kind := range s.waiting {
		return kind
	}
	return ""
}

// connected notes whether a kind can be watched, and says so when that changes.
func (s *Source) connected(kind string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.away[kind]
	if err == nil {
		delete(s.away, kind)
		if was != "" {
			s.log.Info("the API server is watched again", "kind", kind)
		}
		return
	}
	s.away[kind] = err.Error()
	if was == "" {
		s.log.Warn("the API server cannot be watched; what is known is served on, and it is tried again", "kind", kind, "error", err)
	}
}

// Problem returns in one line why the cluster cannot be watched, "" when it can. What is known is served meanwhile.
func (s *Source) Problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range []string{kindPools, kindConfigs, kindController, kindBundle, kindNodes} {
		if why := s.away[kind]; why != "" {
			return kind + ": " + why
		}
	}
	return ""
}
