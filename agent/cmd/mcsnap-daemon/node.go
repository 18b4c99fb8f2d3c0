// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mcsnap/mcsnap/agent/command"
	"github.com/mcsnap/mcsnap/agent/daemon/change"
	"github.com/mcsnap/mcsnap/agent/daemon/node"
	"github.com/mcsnap/mcsnap/agent/daemon/units"
	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/agent/refetch"
	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
)

// fetchDeadline bounds one attempt to get a config from mcsnap's servers; the daemon comes back to it by itself.
const fetchDeadline = time.Minute

// flags are those that say which node it is about.
type flags struct{ root, kubeconfig, node string }

func (f *flags) cluster(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "/var/lib/kubelet/kubeconfig", "kubelet's kubeconfig `file`")
	cmd.Flags().StringVar(&f.node, "node", "", "`name` of the Node (default: the one in the kubelet's client certificate)")
}

// options are what every command has of a node's own, without its cluster. On the machine itself units are those of the
// running systemd; closeUnits lets go of it.
func (f *flags) options(ctx context.Context, at *root.Root, log *slog.Logger) (options node.Options, closeUnits func(), err error) {
	boot := command.BootID()
	options = node.Options{
		BootID: boot, Log: log, Fetch: fetcher(at, log),
		Updater: &change.Updater{Node: at, Units: units.Offline{Root: at.Dir()}, BootID: boot, Log: log},
	}
	if at.Dir() != "/" {
		return options, func() {}, nil
	}
	manager, err := units.Connect(ctx)
	if err != nil {
		return options, nil, &command.CodedError{Code: command.Machine, Cause: err}
	}
	options.Updater.Units = manager
	return options, func() { _ = manager.Close() }, nil // nothing was left to be said
}

// connect says how the cluster is reached, and the node's name in it.
func (f *flags) connect() (*rest.Config, string, error) {
	cluster, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, "", &command.CodedError{Code: command.Network, Cause: fmt.Errorf("%s: %w; has the kubelet joined?", f.kubeconfig, err)}
	}
	cluster.UserAgent = "mcsnap-daemon/" + version
	name := f.node
	if name == "" {
		if name, err = nodeName(cluster); err != nil {
			return nil, "", &command.UsageError{Cause: err}
		}
	}
	return cluster, name, nil
}

// fetcher asks the servers of the node's agent.yaml.
func fetcher(at *root.Root, log *slog.Logger) func(context.Context, snapshot.Digest) (*snapshot.Snapshot, error) {
	return func(ctx context.Context, digest snapshot.Digest) (*snapshot.Snapshot, error) {
		config, err := handoff.ReadConfig(at)
		if err != nil {
			return nil, err
		}
		if config == nil {
			return nil, errors.New(handoff.ConfigPath + ": missing, so no server is known")
		}
		token, err := handoff.ReadToken(at)
		if err != nil {
			return nil, err
		}
		servers := refetch.Servers{URLs: config.Servers, CA: config.CA, AuthHeader: config.AuthHeader, Token: token, Deadline: fetchDeadline, Log: log}
		s, _, err := servers.Get(ctx, digest)
		return s, err
	}
}

// nodeName takes the node's name from the kubelet's client certificate: its subject is system:node:NAME.
func nodeName(cluster *rest.Config) (string, error) {
	text := cluster.CertData
	if cluster.CertFile != "" {
		var err error
		if text, err = os.ReadFile(filepath.Clean(cluster.CertFile)); err != nil {
			return "", err
		}
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			if name, is := strings.CutPrefix(certificate.Subject.CommonName, "system:node:"); is {
				return name, nil
			}
		}
	}
	return "", errors.New("the kubeconfig has no client certificate of a node, so the node's name is not known; give it with --node")
}
