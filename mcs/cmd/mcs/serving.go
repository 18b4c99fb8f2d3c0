// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mcsnap/mcsnap/mcs/run"
	"github.com/mcsnap/mcsnap/mcs/serve"
	"github.com/mcsnap/mcsnap/mcs/specver"
)

// logger makes the log on stderr.
func (s *serving) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.logLevel)); err != nil {
		return nil, usage("--log-level %.20q: use debug, info, warn or error", s.logLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	switch s.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(os.Stderr, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(os.Stderr, options)), nil
	}
	return nil, usage("--log-format %.20q: use text or json", s.logFormat)
}

// config turns the flags into a configuration, or says which flag is wrong.
func (s *serving) config() (run.Config, error) {
	log, err := s.logger()
	if err != nil {
		return run.Config{}, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	cfg := run.Config{
		StateDir: s.stateDir, Listen: s.listen, ListenPlain: s.plainListen, ListenMetrics: s.metricsListen,
		CompatContentFile: s.compatContent, TokenFile: s.tokenFile, Log: log, Registry: registry, Version: version,
		TLS: run.TLS{
			TLSConfig: serve.TLSConfig{MinVersion: s.tlsMin, CipherSuites: s.tlsSuites},
			Dev:       s.devTLS, DevNames: s.devTLSNames, Cert: s.tlsCert, Key: s.tlsKey, CA: s.tlsCA,
		},
		Serve: serve.Config{
			AccessLog: s.accessLog, MaxInFlight: s.maxInFlight, MaxConnections: s.maxConnections,
			HeaderTimeout: s.headerTimeout, IdleTimeout: s.idleTimeout, StallTimeout: s.stall, DrainTimeout: s.drain,
		},
	}
	for _, step := range []func(*run.Config) error{s.bounds, s.urls, s.certificates, s.agentFiles, s.policies, s.addresses} {
		if err := step(&cfg); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

// bounds refuses what is out of range; 0 stands for the default.
func (s *serving) bounds(*run.Config) error {
	if s.stateDir == "" {
		return usage("--state-dir is empty: give a folder of this server's own, such as /var/lib/mcs")
	}
	for flag, n := range map[string]int{"max-in-flight": s.maxInFlight, "max-connections": s.maxConnections} {
		if n < 0 {
			return usage("--%s %d: write a number above 0, or leave it out for the default", flag, n)
		}
	}
	for flag, d := range map[string]time.Duration{
		"header-timeout": s.headerTimeout, "idle-timeout": s.idleTimeout, "stall-timeout": s.stall, "drain-timeout": s.drain,
	} {
		if d < 0 {
			return usage("--%s %s: write a time above 0, or leave it out for the default", flag, d)
		}
	}
	return nil
}

func (s *serving) urls(cfg *run.Config) error {
	for _, external := range s.externalURLs {
		u, err := url.Parse(external)
		if strings.Contains(external, "@") { // whatever stands before it may be a password
			return usage("--external-url: holds a user or a password, which would be written to every node; write https://host:port")
		}
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
			return usage("--external-url %.100q: write https://host:port", external)
		}
		cfg.ExternalURLs = append(cfg.ExternalURLs, u.Scheme+"://"+u.Host)
	}
	for _, address := range append(append([]string{s.metricsListen}, s.listen...), s.plainListen...) {
		if _, _, err := net.SplitHostPort(address); err != nil && address != "" {
			return usage("listening address %.100q: write host:port or :port", address)
		}
	}
	return nil
}

// isURL tells a URL that nodes can use from one that they cannot.
func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.RawQuery == ""
}

// poolNames refuses names that no pool can have.
func poolNames(flag string, names []string) error {
	for _, name := range names {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return usage("--%s %.100q: no pool can have this name; write pools' names, comma-separated", flag, name)
		}
	}
	return nil
}

func (s *serving) certificates(cfg *run.Config) error {
	given := s.tlsCert != "" || s.tlsKey != ""
	switch {
	case s.devTLS && given:
		return usage("--dev-tls and --tls-cert exclude each other: choose one")
	case !s.devTLS && (s.tlsCert == "" || s.tlsKey == "") && len(s.listen) > 0:
		return usage("no certificate: give --tls-cert and --tls-key, or --dev-tls to make them")
	}
	if _, err := cfg.TLS.Build(nil); err != nil {
		return usage("%w", err)
	}
	return nil
}

func (s *serving) agentFiles(cfg *run.Config) error {
	if len(s.agents) == 0 {
		return usage("say --agent ARCH=FILE for the agent that nodes get, or --agent none if the OS image brings it")
	}
	if len(s.agents) == 1 && s.agents[0] == "none" {
		return nil
	}
	seen := map[string]bool{}
	for _, given := range s.agents {
		arch, path, ok := strings.Cut(given, "=")
		if !ok || arch == "" || path == "" || seen[arch] {
			return usage("--agent %.100q: write ARCH=FILE, each architecture once, or none alone", given)
		}
		seen[arch] = true
		cfg.Agents = append(cfg.Agents, run.AgentFile{Arch: arch, Path: path})
	}
	if len(cfg.ExternalURLs) == 0 {
		return usage("--agent needs --external-url: nodes fetch the agent from this server")
	}
	return nil
}

func (s *serving) policies(cfg *run.Config) error {
	choose := func(flag, value, no, yes string) (bool, error) {
		switch value {
		case no:
			return false, nil
		case yes:
			return true, nil
		}
		return false, usage("--%s %.20q: use %s or %s", flag, value, no, yes)
	}
	var err error
	if cfg.Serve.RejectUnknownPools, err = choose("unknown-pool", s.unknownPool, "retry", "reject"); err != nil {
		return err
	}
	if cfg.Serve.Gate.Final, err = choose("unauthenticated", s.unauthenticated, "retry", "reject"); err != nil {
		return err
	}
	if cfg.Serve.Gate.LogOnly, err = choose("gate", s.gate, "enforce", "log"); err != nil {
		return err
	}
	if s.defaultSpec != "" {
		if cfg.Serve.DefaultSpec, err = specver.Parse(s.defaultSpec); err != nil {
			return usage("--default-spec: %w", err)
		}
	}
	return nil
}

func (s *serving) addresses(cfg *run.Config) error {
	parse := func(flag string, texts []string) (list []netip.Prefix, err error) {
		for _, text := range texts {
			p, err := netip.ParsePrefix(text)
			if err != nil {
				return nil, usage("--%s %.50q: write an address range such as 10.0.0.0/16 or fd00::/8", flag, text)
			}
			if p.Addr().Is4In6() {
				return nil, usage("--%s %.50q: write the IPv4 range itself", flag, text)
			}
			list = append(list, p.Masked())
		}
		return list, nil
	}
	var err error
	if cfg.Serve.Gate.Allow, err = parse("allow-cidr", s.allow); err != nil {
		return err
	}
	cfg.Serve.Gate.Deny, err = parse("deny-cidr", s.deny)
	return err
}
