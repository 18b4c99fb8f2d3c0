// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/devtls"
	"github.com/mcsnap/mcsnap/mcs/serve"
)

// TLS says where the certificate comes from.
type TLS struct {
	serve.TLSConfig
	// Dev makes a certificate in the state folder, for ExternalURLs, this machine's names and DevNames.
	Dev      bool
	DevNames []string
	// Cert and Key are PEM files; they are read again when they change.
	Cert, Key string
	// CA is the PEM file with what verifies the certificate. The agent gets it for fetching a snapshot again; "" means
	// that the node's own authorities do.
	CA string
}

// certificate is the server's pair, read again on change. The zero value, of a server without TLS, does nothing.
type certificate struct {
	watcher *certwatcher.CertWatcher
	config  *tls.Config
}

// certificate opens the pair, making it first if that is asked for.
func (cfg *Config) certificate() (certificate, error) {
	if len(cfg.Listen) == 0 {
		return certificate{}, nil
	}
	if cfg.TLS.Dev {
		names, err := cfg.devNames()
		if err != nil {
			return certificate{}, err
		}
		files, err := devtls.Ensure(filepath.Join(cfg.StateDir, "tls"), names, time.Now())
		if err != nil {
			return certificate{}, &MachineError{fmt.Errorf("%w; see --state-dir", err)}
		}
		cfg.TLS.Cert, cfg.TLS.Key, cfg.TLS.CA = files.Cert, files.Key, files.CA
		cfg.Log.Info("this server's certificate is its own; stubs need the CA", "ca", files.CA)
	}
	ctrllog.SetLogger(logr.FromSlogHandler(cfg.Log.Handler()))
	watcher, err := certwatcher.New(cfg.TLS.Cert, cfg.TLS.Key)
	if err != nil {
		return certificate{}, cfg.TLS.badPair(err)
	}
	config, err := cfg.TLS.Build(watcher.GetCertificate)
	if err != nil {
		return certificate{}, &InputError{err}
	}
	return certificate{watcher, config}, nil
}

func (c certificate) watch(ctx context.Context) error {
	if c.watcher == nil {
		return nil
	}
	if err := c.watcher.Start(ctx); err != nil && ctx.Err() == nil {
		return &MachineError{fmt.Errorf("TLS certificate: %w; keep the files in place while the server runs", err)}
	}
	return nil
}

func (c certificate) register(into prometheus.Registerer) {
	if c.watcher == nil {
		return
	}
	serve.RegisterCertificateExpiry(into, func() time.Time {
		pair, err := c.watcher.GetCertificate(nil)
		if err != nil || pair == nil || pair.Leaf == nil {
			return time.Unix(0, 0)
		}
		return pair.Leaf.NotAfter
	})
}

// devNames are the names that nodes and people on this machine may use for the server.
func (cfg *Config) devNames() ([]string, error) {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	for _, external := range cfg.ExternalURLs {
		u, err := url.Parse(external)
		if err != nil || u.Hostname() == "" {
			return nil, &InputError{fmt.Errorf("external URL %.100q has no host; write https://host:port", external)}
		}
		names = append(names, u.Hostname())
	}
	names = append(names, cfg.TLS.DevNames...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// agentYAML is what the agent reads as /etc/mcsnap/agent.yaml.
type agentYAML struct {
	APIVersion string   `json:"apiVersion"`
	Servers    []string `json:"servers"`
	CA         string   `json:"ca,omitempty"`
	AuthHeader string   `json:"authHeader,omitempty"`
}

// check looks at the files that were given, before anything is written.
func (t TLS) check() error {
	if t.Dev {
		return nil
	}
	if t.Cert != "" {
		if _, err := tls.LoadX509KeyPair(t.Cert, t.Key); err != nil {
			return t.badPair(err)
		}
	}
	_, err := t.authority()
	return err
}

func (t TLS) badPair(err error) error {
	return &InputError{fmt.Errorf("TLS certificate %s and key %s: %w; give a matching PEM pair", t.Cert, t.Key, err)}
}

// authority reads what verifies the certificate, nothing where none is named.
func (t TLS) authority() ([]byte, error) {
	if t.CA == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, &InputError{fmt.Errorf("TLS CA: %w; give the PEM file that verifies the server's certificate", err)}
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return nil, &InputError{fmt.Errorf("TLS CA %s: holds no certificate; give the PEM file that verifies the server's certificate", t.CA)}
	}
	return pem, nil
}

// agentConfig fills in what the agent needs to fetch a snapshot again; nothing where no node could reach this server.
func (t TLS) agentConfig(in *compose.Inputs, cfg Config) error {
	if len(cfg.ExternalURLs) == 0 {
		cfg.Log.Warn("nodes get no address of this server, so a damaged snapshot cannot be fetched again; give --external-url")
		return nil
	}
	config := agentYAML{APIVersion: "mcsnap/v1", Servers: cfg.ExternalURLs}
	pem, err := t.authority()
	if err != nil {
		return err
	}
	config.CA = string(pem)
	if cfg.TokenFile != "" || cfg.Serve.Gate.Tokens != nil {
		config.AuthHeader = "Authorization"
	}
	text, err := yaml.Marshal(config)
	in.AgentConfig = text
	return err
}
