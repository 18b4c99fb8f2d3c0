// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	authclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mcsnap/mcsnap/mcs/events"
	"github.com/mcsnap/mcsnap/mcs/publish"
	"github.com/mcsnap/mcsnap/mcs/run"
	"github.com/mcsnap/mcsnap/mcs/serve"
	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/mcs/source/cluster"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

func serveCommand() *cobra.Command {
	var (
		flags                    serving
		kubeconfig               string
		watched                  cluster.Config
		required, users, intends []string
		pools                    []string
		review                   bool
		cfg                      run.Config
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the configs of a cluster, and lose none",
		Long: `Watch a cluster and serve what its pools name. Every rendered config is captured when it appears: sealed, and on
stable storage in the state folder. From then on it is served for as long as a pool names it, whoever deletes it in the
cluster, whether or not the API server is there, and after a restart too.

What a pool's new nodes get is OpenShift's choice: spec.configuration once a machine has proved it, status.configuration
until then. If that was deleted before it could be captured, nodes get what the pool was answered with last, which a
response header, a metric and an event on the pool say. Where there is nothing to give, nodes are told to ask again.

Nodes join with a kubeconfig made of the token in --node-token-dir, the CA bundle of the ConfigMap --kubeconfig-data
(else ca.crt beside the token), and the API server's URL in the ControllerConfig. All are taken up again when they
change. Without a token nodes are told to ask again: one without credentials would never join.

/readyz is 200 once every known pool can be answered, with or without the API server; /readyz?verbose says what is
wrong besides. The rights it needs are in deploy/base/rbac.yaml, and docs/install.md leads through deploying it.

Exit codes: ` + exitCodes,
		Example: `  # in the cluster, with the service account's rights
  mcs serve --tls-cert /etc/mcs/tls.crt --tls-key /etc/mcs/tls.key --node-token-dir /etc/mcs/bootstrap-token \
    --external-url https://api-int.example.com:22623 --agent amd64=/usr/local/bin/mcsnap-agent

  # try it from a workstation: a certificate of its own, nodes get no credentials
  mcs serve --kubeconfig ~/.kube/config --no-credentials --dev-tls --state-dir ./state --agent none`,
		Args: noArguments,
		PreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			switch {
			case watched.NoCredentials && cmd.Flags().Changed("node-token-dir"):
				return usage("--no-credentials and --node-token-dir exclude each other: choose one")
			case review && flags.tokenFile != "":
				return usage("--token-review and --token-file exclude each other: choose one")
			case !watched.NoCredentials && watched.TokenDir == "":
				return usage("--node-token-dir is empty: give the folder with token and ca.crt, or --no-credentials")
			case !review && (cmd.Flags().Changed("token-audience") || len(users) > 0):
				return usage("--token-audience and --token-user say which reviewed tokens are good: give --token-review too")
			case review && len(intends) == 0:
				return usage("--token-audience is empty: say which audience a node's token is for, such as mcs")
			case watched.Patience < 0:
				return usage("--api-patience %s: write a time above 0, or leave it out for the default", watched.Patience)
			case watched.APIServer != "" && !isURL(watched.APIServer):
				return usage("--apiserver-url %.100q: write https://host:port", watched.APIServer)
			}
			if watched.CABundle != "" {
				if _, _, err := cluster.BundleName(watched.CABundle); err != nil {
					return usage("--kubeconfig-data: %w", err)
				}
			}
			if err := poolNames("require-pools", required); err != nil {
				return err
			}
			if err := poolNames("force-spec", watched.ForceSpec); err != nil {
				return err
			}
			cfg, err = flags.config()
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if watched.NoCredentials {
				watched.TokenDir, watched.CABundle = "", ""
			}
			if watched.REST, err = connection(kubeconfig); err != nil {
				return err
			}
			if review {
				client, err := authclient.NewForConfig(watched.REST)
				if err != nil {
					return &run.InputError{Cause: fmt.Errorf("connect to the API server: %w", err)}
				}
				cfg.Serve.Gate.Tokens = serve.NewTokenReview(client.TokenReviews(), intends, users)
			}
			watched.Log, watched.State, cfg.Required, cfg.Serve.Pools = cfg.Log, cfg.StateDir, required, pools
			if len(required) == 0 {
				cfg.Required = pools
			}
			return runOn(cmd, cfg, watched)
		},
	}
	f := cmd.Flags()
	f.StringVar(&kubeconfig, "kubeconfig", "", "how to reach the cluster; empty means as the pod's service account")
	f.StringVar(&watched.TokenDir, "node-token-dir", "/etc/mcs/bootstrap-token", "folder with token and ca.crt of the node-bootstrapper service account; taken up again when they change")
	f.BoolVar(&watched.NoCredentials, "no-credentials", false, "nodes get no kubeconfig")
	f.StringVar(&watched.CABundle, "kubeconfig-data", "openshift-machine-config-operator/kubeconfig-data", "ConfigMap NAMESPACE/NAME whose ca-bundle.crt wins over ca.crt, \"\" for none")
	f.StringVar(&watched.APIServer, "apiserver-url", "", "URL of the API server for nodes; empty means the ControllerConfig's")
	f.StringSliceVar(&watched.ForceSpec, "force-spec", nil, "pools whose new nodes get spec.configuration though no machine has proved it; said in the log")
	f.StringSliceVar(&required, "require-pools", nil, "pools without which /readyz is 503; empty means those of --pools, else every known pool, at least one")
	f.StringSliceVar(&pools, "pools", nil, "answer for these pools only, comma-separated; nodes of others are told to ask again, and all configs are captured")
	f.DurationVar(&watched.Patience, "api-patience", 0, "how long the API server may take at start before nodes are answered from what is remembered (default 1s)")
	f.BoolVar(&watched.Nodes, "refuse-joined", false, "refuse configs to the addresses of Node objects: whatever runs on a node has no business with a new one's")
	f.BoolVar(&review, "token-review", false, "ask the API server whether a node's bearer token is good")
	f.StringSliceVar(&intends, "token-audience", []string{"mcs"}, "audiences that a reviewed token may be for")
	f.StringSliceVar(&users, "token-user", nil, "users whose tokens are good (system:serviceaccount:NAMESPACE:NAME); empty means all")
	flags.register(cmd)
	return cmd
}

func connection(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil && kubeconfig == "" {
		return nil, &run.InputError{Cause: fmt.Errorf("not in a cluster (%w); give --kubeconfig", err)}
	}
	if err != nil {
		return nil, &run.InputError{Cause: fmt.Errorf("--kubeconfig %s: %w; give one that kubectl can use", kubeconfig, err)}
	}
	config.UserAgent = "mcs/" + version
	return config, nil
}

// runOn runs a server on a cluster.
func runOn(cmd *cobra.Command, cfg run.Config, watched cluster.Config) error {
	told, err := events.New(watched.REST, cfg.Log)
	if err != nil {
		return &run.InputError{Cause: err}
	}
	go told.Run(cmd.Context())
	cfg.OnChange = told.Answered
	var from *cluster.Source
	if watched.Nodes {
		cfg.Serve.Gate.Joined = func(a netip.Addr) bool { return from.Joined(a) }
	}
	cfg.Source = func(into store.Store) (source.Source, error) {
		watched.Store = into
		if from, err = cluster.New(watched); err != nil {
			return nil, &run.InputError{Cause: err}
		}
		cfg.Registry.MustRegister(
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Namespace: "mcsnap", Name: "cluster_watched", Help: "1 while everything in the cluster is watched; 0 while nodes are answered from what is known.",
			}, func() float64 {
				if from.Problem() != "" {
					return 0
				}
				return 1
			}),
			caSource{from})
		return from, nil
	}
	cfg.Notes = func() []publish.Check { return []publish.Check{{Name: "cluster", Problem: from.Problem()}} }
	return run.Run(cmd.Context(), cfg)
}

// caSource says where the CA for nodes comes from, as a metric's label.
type caSource struct{ from *cluster.Source }

var caSourceDesc = prometheus.NewDesc("mcsnap_ca_source", "Where the CA in the kubeconfig for nodes comes from.", []string{"ca_source"}, nil)

func (caSource) Describe(into chan<- *prometheus.Desc) { into <- caSourceDesc }
func (c caSource) Collect(into chan<- prometheus.Metric) {
	into <- prometheus.MustNewConstMetric(caSourceDesc, prometheus.GaugeValue, 1, c.from.CASource())
}
