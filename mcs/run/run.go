// SPDX-License-Identifier: Apache-2.0

// Package run puts a server together from a source, a store, a publisher and the HTTP face, and runs it to its end. It
// is what the commands have in common; it parses no flags.
package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/mcsnap/mcsnap/mcs/agents"
	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/publish"
	"github.com/mcsnap/mcsnap/mcs/serve"
	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

// Config of a whole server.
type Config struct {
	// StateDir holds what outlives a restart: snapshots, agents, the certificates of DevTLS.
	StateDir string
	// Source makes the source, given where captured configs go.
	Source func(store.Store) (source.Source, error)
	// Notes says what /readyz?verbose tells of the source, without readiness hanging on it; nil means nothing.
	Notes func() []publish.Check
	// OnChange is told of every answer that takes the place of another; nil means that nobody is.
	OnChange func(*publish.Answer)
	// Required names the pools without which the server is not ready; empty means every known pool, at least one.
	Required []string

	// Listen are the addresses for TLS ("" as host means every address, IPv4 and IPv6), ListenPlain those without.
	Listen, ListenPlain []string
	// ListenMetrics is the address for /metrics, "" for none.
	ListenMetrics string
	TLS           TLS

	// ExternalURLs are how nodes reach this server, such as https://mcs.example.com:22623. Agents are fetched from the
	// first; all are written down for the agent.
	ExternalURLs []string
	// Agents are the binaries that are handed out; none leaves the agent to the OS image.
	Agents []AgentFile
	// CompatContentFile serves OpenShift's own copy of the config too.
	CompatContentFile bool

	// TokenFile holds the bearer tokens that are good, "" for none.
	TokenFile string
	// Serve has the settings of the HTTP face. Answers, Snapshots, Agents, Metrics and Log are filled in here, and
	// Gate.Tokens where there is a TokenFile.
	Serve serve.Config

	Log      *slog.Logger
	Registry *prometheus.Registry
	Version  string
	// Listening is called once, with the addresses of Listen, ListenPlain and ListenMetrics in this order; nil means
	// that nobody cares.
	Listening func([]net.Addr)
}

// AgentFile is one agent binary on disk.
type AgentFile struct{ Arch, Path string }

// Run serves until ctx ends. It returns an *InputError or a *MachineError when it could not start, serve.ErrCut when
// bodies were cut short at the end, and nil when all went well.
func Run(ctx context.Context, cfg Config) (err error) {
	// What was given is looked at, and the ports are taken, before anything is written.
	tokens, err := cfg.tokens()
	if err != nil {
		return err
	}
	if err := cfg.TLS.check(); err != nil {
		return err
	}
	ports, err := cfg.listen()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			ports.close()
		}
	}()
	kept, err := cfg.open()
	if err != nil {
		return err
	}
	defer kept.close()
	from, err := cfg.Source(kept)
	if err != nil {
		return err
	}
	inputs, folder, err := cfg.inputs()
	if err != nil {
		return err
	}
	certificate, err := cfg.certificate()
	if err != nil {
		return err
	}
	if err := cfg.TLS.agentConfig(&inputs, cfg); err != nil {
		return err
	}

	publisher := publish.New(publish.Config{
		Store: kept, Log: cfg.Log, Registry: cfg.Registry, Inputs: inputs, Required: cfg.Required,
	})
	cfg.Serve.Answers, cfg.Serve.Snapshots, cfg.Serve.Agents = publisher, kept, folder
	if cfg.OnChange != nil {
		publisher.OnChange(cfg.OnChange)
	}
	cfg.Serve.Notes = func() []publish.Check { return cfg.notes(kept) }
	cfg.Serve.Metrics, cfg.Serve.Log = serve.NewMetrics(cfg.Registry), cfg.Log
	serve.RegisterBuildInfo(cfg.Registry, cfg.Version)
	certificate.register(cfg.Registry)

	group, running := errgroup.WithContext(ctx)
	if tokens != nil {
		cfg.Serve.Gate.Tokens = tokens
		group.Go(func() error { return tokens.Run(running) })
	}
	cfg.announce(ports)
	group.Go(func() error { kept.Run(running, flushEvery); return nil })
	group.Go(func() error { return certificate.watch(running) })
	group.Go(func() error { return serveMetrics(running, ports.metrics, cfg.Registry) })
	group.Go(func() error { return publisher.Run(running, from) })
	group.Go(func() error { return serve.New(cfg.Serve).Run(running, ports.serving(certificate)...) })
	err = group.Wait()
	publisher.FlushServed(context.WithoutCancel(ctx))
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil
	}
	return err
}

// tokens opens the token file, if there is one.
func (cfg Config) tokens() (*serve.TokenFile, error) {
	if cfg.TokenFile == "" {
		return nil, nil
	}
	tokens, err := serve.OpenTokenFile(cfg.TokenFile, cfg.Log)
	if err != nil {
		return nil, &InputError{err}
	}
	return tokens, nil
}

// inputs takes in the agents and says what goes into every body.
func (cfg Config) inputs() (compose.Inputs, *agents.Folder, error) {
	in := compose.Inputs{CompatContentFile: cfg.CompatContentFile}
	folder, err := agents.Open(filepath.Join(cfg.StateDir, "agents"))
	if err != nil {
		return in, nil, &MachineError{fmt.Errorf("%w; see --state-dir", err)}
	}
	if len(cfg.Agents) == 0 {
		cfg.Log.Warn("nodes get no first-boot agent from this server; see to it that the OS image brings mcsnap-agent, or give --agent ARCH=FILE")
	}
	for _, file := range cfg.Agents {
		a, err := folder.Add(file.Arch, file.Path)
		if _, bad := errors.AsType[*agents.BadAgentError](err); bad {
			return in, nil, &InputError{err}
		}
		if err != nil {
			return in, nil, &MachineError{fmt.Errorf("%w; see --state-dir", err)}
		}
		in.Agents = append(in.Agents, compose.Agent{
			Arch: a.Arch, SHA512: a.SHA512, URL: cfg.ExternalURLs[0] + "/agent/sha512-" + a.SHA512,
		})
	}
	return in, folder, nil
}
