// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/mcsnap/mcsnap/mcs/prune"
	"github.com/mcsnap/mcsnap/mcs/run"
)

// apiTime is how long the API server may take for a command.
const apiTime = 30 * time.Second

// networkError says that the API server could not be asked.
type networkError struct{ cause error }

func (e *networkError) Error() string { return e.cause.Error() }
func (e *networkError) Unwrap() error { return e.cause }

func clusterClient(kubeconfig string) (*dynamic.DynamicClient, error) {
	config, err := connection(kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, &run.InputError{Cause: fmt.Errorf("connect to the API server: %w", err)}
	}
	return client, nil
}

func storeExportCommand() *cobra.Command {
	var flags stored
	var kubeconfig string
	cmd := &cobra.Command{
		Use: "export NAME|DIGEST", Short: "Print a MachineConfig, fit for kubectl create",
		Long: `Print a stored config as a MachineConfig: it repairs a cluster that has lost one. With --kubeconfig it belongs to its
pool again (an ownerReference with the pool's present UID), as the controller made it. It holds secrets.

Exit codes: ` + storeExitCodes,
		Example: "  mcs store export rendered-worker-7e1b47bed97a93875424c5a769300940 --kubeconfig ~/.kube/config | kubectl create -f -",
		Args:    oneArgument("a rendered config's name or a digest"),
		PreRunE: flags.judge,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := flags.open()
			if err != nil {
				return err
			}
			defer d.Close() //nolint:errcheck // only read
			e, err := find(cmd, d, args[0])
			if err != nil {
				return err
			}
			s, err := d.Get(cmd.Context(), e.Digest)
			if err != nil {
				return err
			}
			exported := append(s.MachineConfig()[:len(s.MachineConfig()):len(s.MachineConfig())], '\n')
			if kubeconfig != "" {
				uid, err := poolUID(cmd.Context(), kubeconfig, s.Pool())
				if err != nil {
					return err
				}
				if exported, err = s.Export(uid); err != nil {
					return err
				}
			}
			_, err = cmd.OutOrStdout().Write(exported)
			return err
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "the cluster whose pool it is to belong to; empty leaves the owner out")
	flags.register(cmd, false)
	return cmd
}

func poolUID(ctx context.Context, kubeconfig, pool string) (string, error) {
	client, err := clusterClient(kubeconfig)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, apiTime)
	defer cancel()
	resource := schema.GroupVersionResource{Group: "machineconfiguration.openshift.io", Version: "v1", Resource: "machineconfigpools"}
	found, err := client.Resource(resource).Get(ctx, pool, metav1.GetOptions{})
	if err != nil {
		return "", &networkError{fmt.Errorf("read pool %s: %w; without --kubeconfig the config is printed without an owner", pool, err)}
	}
	return string(found.GetUID()), nil
}

func storePruneCommand() *cobra.Command {
	var (
		flags      stored
		kubeconfig string
		yes        bool
		beside     bool
		policy     prune.Policy
	)
	cmd := &cobra.Command{
		Use: "prune", Short: "Remove snapshots that nothing needs any more; without --yes only say which",
		Long: `Judge every stored snapshot, and with --yes remove those that nothing needs. A snapshot stays while

  - a pool's spec or status names it, or the pool was answered with it last,
  - a node's current or desired config is of its name, or the node booted from it,
  - it was served within --keep-served: a node that has fetched it may not have joined yet,
  - it is among the --keep-newest newest configs of its pool.

Nothing is removed if the pools or the nodes cannot all be read. What is removed is gone from the store, its copies that
were put aside as damaged included; the cluster's own objects are not touched.

With --yes it writes to the state folder, which only one process may: end the server before, or give --beside-server.
Then the server goes on, as it has to when the disk is full and it keeps in memory what is new; what it served within the
last seconds may not be noted yet and counts as not served.

Exit codes: ` + storeExitCodes,
		Example: "  mcs store prune --kubeconfig ~/.kube/config\n  mcs store prune --kubeconfig ~/.kube/config --keep-served 24h --yes",
		Args:    noArguments,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case policy.KeepServed < 0:
				return usage("--keep-served %s: write a time of 0 or more, such as 72h", policy.KeepServed)
			case policy.KeepNewest < 0:
				return usage("--keep-newest %d: write a number of 0 or more", policy.KeepNewest)
			}
			return flags.judge(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := flags.open()
			if err != nil {
				return err
			}
			defer d.Close() //nolint:errcheck // what it changed is on disk already
			if yes && !beside {
				unlock, err := flags.lock()
				if err != nil {
					return err
				}
				defer unlock()
			}
			client, err := clusterClient(kubeconfig)
			if err != nil {
				return err
			}
			entries, err := d.Entries(cmd.Context())
			if err != nil {
				return &run.MachineError{Cause: err}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), apiTime)
			defer cancel()
			roots, err := prune.Read(ctx, client)
			if err != nil {
				return &networkError{fmt.Errorf("nothing is removed: %w", err)}
			}
			policy.Now = time.Now()
			verdicts := prune.Mark(entries, roots, policy)
			var gone int
			for _, v := range verdicts {
				if v.Keep {
					continue
				}
				gone++
				if yes {
					if err := d.Delete(cmd.Context(), v.Digest); err != nil {
						return &run.MachineError{Cause: err}
					}
				}
			}
			if yes {
				if err := d.RemoveDamaged(); err != nil {
					return &run.MachineError{Cause: err}
				}
			}
			if done, err := flags.json(cmd, map[string]any{"removed": yes, "snapshots": verdicts}); done {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "VERDICT\tNAME\tDIGEST\tPOOL\tREASON")
			for _, v := range verdicts {
				verdict := "keep"
				if !v.Keep {
					verdict = map[bool]string{true: "removed", false: "remove"}[yes]
				}
				for i, reason := range v.Reasons {
					if i == 0 {
						fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", verdict, v.Name, short(v.Digest), v.Pool, reason)
					} else {
						fmt.Fprintf(table, "\t\t\t\t%s\n", reason)
					}
				}
			}
			if err := table.Flush(); err != nil {
				return err
			}
			if gone > 0 && !yes {
				fmt.Fprintf(os.Stderr, "%d of %d would be removed; nothing was. Run it with --yes to remove them.\n", gone, len(verdicts))
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&kubeconfig, "kubeconfig", "", "the cluster whose pools and nodes are asked; empty means as the pod's service account")
	f.BoolVar(&yes, "yes", false, "remove, not only say what would be")
	f.BoolVar(&beside, "beside-server", false, "remove though a server has the state folder")
	f.DurationVar(&policy.KeepServed, "keep-served", 72*time.Hour, "keep what was served within this time")
	f.IntVar(&policy.KeepNewest, "keep-newest", 3, "keep so many of each pool's newest configs")
	flags.register(cmd, true)
	return cmd
}
