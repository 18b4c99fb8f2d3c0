// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/mcs/run"
	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/mcs/source/directory"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

func bootstrapCommand() *cobra.Command {
	var (
		flags         serving
		dir           string
		pools         []string
		kubeconfig    string
		noCredentials bool
		cfg           run.Config
	)
	cmd := &cobra.Command{
		Use:   "bootstrap --dir DIR",
		Short: "Serve the configs of a folder, without a cluster",
		Long: `Serve what lies in a folder, laid out as OpenShift's bootstrap server reads it:

  DIR/machine-pools/*.yaml                               one MachineConfigPool each
  DIR/machine-configs/*.yaml                             one rendered MachineConfig each
  DIR/controller-config/machine-config-controller.yaml   the ControllerConfig, optional

The folder is watched. Changes are taken up as a whole; a broken or half-written file keeps its last good state and is
reported once; a config that disappears stays servable by its digest. Pools without a config are told to ask again.

Exit codes: ` + exitCodes,
		Example: `  # try it: a certificate of its own, no credentials for nodes
  mcs bootstrap --dir ./example --no-credentials --dev-tls --state-dir ./state --agent none

  # masters only, as on a bootstrap machine
  mcs bootstrap --dir /etc/mcs/bootstrap --pools master --kubeconfig /etc/kubernetes/bootstrap-kubeconfig \
    --tls-cert /etc/mcs/tls.crt --tls-key /etc/mcs/tls.key --tls-ca /etc/mcs/ca.crt \
    --external-url https://api-int.example.com:22623 --agent amd64=/usr/local/bin/mcsnap-agent`,
		Args: noArguments,
		PreRunE: func(*cobra.Command, []string) (err error) {
			switch {
			case dir == "":
				return usage("--dir is missing: give the folder with machine-pools and machine-configs")
			case (kubeconfig == "") == !noCredentials:
				return usage("say what nodes get to join with: --kubeconfig FILE, or --no-credentials for nothing")
			}
			if err := poolNames("pools", pools); err != nil {
				return err
			}
			cfg, err = flags.config()
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				return &run.InputError{Cause: fmt.Errorf("--dir %s: is not a folder that can be read; make it, its contents may come later", dir)}
			}
			cfg.Required, cfg.Serve.Pools = pools, pools
			cfg.Source = func(into store.Store) (source.Source, error) {
				return directory.New(directory.Config{Dir: dir, Pools: pools, Kubeconfig: kubeconfig, Store: into, Log: cfg.Log}), nil
			}
			return run.Run(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "dir", "", "the folder")
	f.StringSliceVar(&pools, "pools", nil, "answer for these pools only, comma-separated; nodes of others are told to ask again")
	f.StringVar(&kubeconfig, "kubeconfig", "", "what nodes get as /etc/kubernetes/kubeconfig; taken up again when it changes")
	f.BoolVar(&noCredentials, "no-credentials", false, "nodes get no kubeconfig")
	flags.register(cmd)
	return cmd
}
