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

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

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

type flags struct {
	root, kubeconfig, node, reboot, format string
	every                                  time.Duration
}

func runCommand() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Keep this node at its desired config until told to stop",
		Long: `Connects to the cluster as the kubelet, and tells how far the node is in the
annotations currentConfig, state and reason, as OpenShift's daemon does. An update
is all or nothing: one that was cut is finished, or taken back, at the next start.

With a --root other than / no machine is touched: units are enabled below that
root and nothing is rebooted.`,
		Example: `  mcsnap-daemon run
  mcsnap-daemon run --reboot=never --drift-interval 5m
  mcsnap-daemon run --root /tmp/node --kubeconfig kubeconfig --node worker-0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&f.root, "root", "/", "`folder` that is the node's root")
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "/var/lib/kubelet/kubeconfig", "kubelet's kubeconfig `file`")
	cmd.Flags().StringVar(&f.node, "node", "", "`name` of the Node (default: the one in the kubelet's client certificate)")
	cmd.Flags().StringVar(&f.reboot, "reboot", "auto", "`policy` after an update: auto, or never")
	cmd.Flags().DurationVar(&f.every, "drift-interval", time.Minute, "how often the disk is compared with the config, and what failed is tried again")
	cmd.Flags().StringVar(&f.format, "log-format", "text", "`format` of the log on stderr: text or json")
	return cmd
}

func (f flags) run(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	switch {
	case f.format == "json":
		log = slog.New(slog.NewJSONHandler(os.Stderr, nil))
	case f.format != "text":
		return &codedError{exitUsage, fmt.Errorf("--log-format %s: use text or json", f.format)}
	}
	if f.reboot != "auto" && f.reboot != "never" {
		return &codedError{exitUsage, fmt.Errorf("--reboot %s: use auto or never", f.reboot)}
	}
	cluster, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return &codedError{exitNetwork, fmt.Errorf("%s: %w; has the kubelet joined?", f.kubeconfig, err)}
	}
	cluster.UserAgent = "mcsnap-daemon/" + version
	name := f.node
	if name == "" {
		if name, err = nodeName(cluster); err != nil {
			return &codedError{exitUsage, err}
		}
	}
	at, err := root.Open(f.root, nil)
	if err != nil {
		return &codedError{exitMachine, err}
	}
	defer at.Close() //nolint:errcheck // a folder that was only opened

	options := node.Options{
		Cluster: cluster, Name: name, BootID: bootID(), Every: f.every, Log: log,
		Updater: &change.Updater{Node: at, Units: units.Offline{Root: at.Dir()}, BootID: bootID(), Log: log},
		Fetch:   fetcher(at, log),
		Ready:   func() { notify(log, "READY=1\nSTATUS=keeping "+name+" at its desired config") },
	}
	if at.Dir() == "/" {
		manager, err := units.Connect(ctx)
		if err != nil {
			return &codedError{exitMachine, err}
		}
		defer manager.Close() //nolint:errcheck // the process ends
		options.Updater.Units = manager
		if f.reboot == "auto" {
			options.Reboot = manager.Reboot
		}
	}
	log.Info("starting", "node", name, "root", at.Dir(), "version", version)
	if err := node.Run(ctx, options); err != nil {
		return &codedError{exitMachine, err}
	}
	return nil
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

func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

func notify(log *slog.Logger, state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		log.Warn("systemd was not told", "problem", err)
	}
}
