// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/ignition-stub/stub"
)

type renderFlags struct {
	stub.Options
	access             accessFlags
	spec, form, output string
	snippetFiles       []string
	headers, total     time.Duration
	secret             stub.Secret
}

func renderCommand() *cobra.Command {
	f := &renderFlags{}
	command := &cobra.Command{
		Use:   "render --url URL [--ca FILE]…",
		Short: "Make the config that becomes a machine's user-data",
		Long: `Makes a stub: an Ignition config that merges the one at --url, and believes the CAs in --ca. It is checked by
Ignition's own validator before it is written, and depends on the flags and files alone.

Give every CA that may have issued the server's certificate during the life of the user-data: to rotate a CA, render
with the old and the new one before the server changes. ` + "`ignition-stub doctor`" + ` tells whether a stub works.

A token ends up readable in the user-data, on many platforms from inside the machine too: take one for this purpose
alone, that expires. It is read from a file or from standard input (--token-file -), never from the command line.`,
		Example: `  ignition-stub render --url https://api-int.example.com:22623 --pool worker --ca ca.crt
  ignition-stub render --url https://[fd00::5]:22623/config/worker --ca old.crt --ca new.crt --gzip -o worker.ign
  ignition-stub render --url https://api-int.example.com:22623/config/worker --ca ca.crt --token-file token \
      --snippet hostname.ign --platform aws --as machine-api --name worker-user-data-mcsnap -o secret.json`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return f.run(command) },
	}
	flags := command.Flags()
	flags.StringVar(&f.URL, "url", "", "the server, https://host:port, or the whole URL of a config")
	flags.StringVar(&f.Pool, "pool", "", "the machine config pool, where --url names the server alone")
	f.access.register(flags, "")
	flags.StringVar(&f.spec, "spec", "3.4", "Ignition spec version: 2.2, or 3.0 to 3.6")
	flags.BoolVar(&f.Gzip, "gzip", false, "let the machine fetch the compressed config, URL.gz")
	flags.DurationVar(&f.BootBudget, "boot-budget", 2*time.Hour, "warn when the token expires sooner")
	flags.DurationVar(&f.headers, "timeout-headers", 0, "how long Ignition waits for an answer's headers (default Ignition's 10s)")
	flags.DurationVar(&f.total, "timeout-total", 0, "how long Ignition tries in all (default for ever)")
	flags.StringVar(&f.HTTPProxy, "http-proxy", "", "proxy for http:// URLs")
	flags.StringVar(&f.HTTPSProxy, "https-proxy", "", "proxy for https:// URLs")
	flags.StringSliceVar(&f.NoProxy, "no-proxy", nil, "hosts, domains and networks that are reached without the proxy")
	flags.StringArrayVar(&f.snippetFiles, "snippet", nil, "Ignition config to put over the server's (may be given several times)")
	flags.StringVar(&f.Platform, "platform", "", "keep this platform's limit on user-data: "+strings.Join(stub.PlatformNames(), ", "))
	flags.StringVar(&f.form, "as", "json", "how to write it down: json, base64, machine-api or cluster-api (a Secret)")
	flags.StringVar(&f.secret.Name, "name", "", "name of the Secret")
	flags.StringVar(&f.secret.Namespace, "namespace", "", "namespace of the Secret")
	flags.StringVar(&f.secret.Cluster, "cluster", "", "name of the cluster, for a Secret of Cluster API")
	flags.StringVarP(&f.output, "output", "o", "", "file to write, mode 0600 (default standard output)")
	complete(command, "spec", "2.2", "3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6")
	complete(command, "platform", stub.PlatformNames()...)
	complete(command, "as", "json", "base64", "machine-api", "cluster-api")
	return command
}

// complete offers a flag's values to shells.
func complete(command *cobra.Command, flag string, values ...string) {
	if err := command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag
	}
}

func (f *renderFlags) run(command *cobra.Command) (err error) {
	if f.URL == "" {
		return usage("--url is missing: where will machines find the server")
	}
	if f.Version, err = stub.ParseVersion(f.spec); err != nil {
		return err
	}
	if f.HTTPResponseHeaders, err = seconds("--timeout-headers", f.headers); err != nil {
		return err
	}
	if f.HTTPTotal, err = seconds("--timeout-total", f.total); err != nil {
		return err
	}
	access, err := f.access.read(command.InOrStdin())
	if err != nil {
		return err
	}
	f.CAs, f.Token, f.AuthHeader = access.cas, access.token, access.headerForToken
	for _, name := range f.snippetFiles {
		config, err := readFile(name, command.InOrStdin())
		if err != nil {
			return fmt.Errorf("--snippet: %w", err)
		}
		f.Snippets = append(f.Snippets, stub.Snippet{Name: filepath.Base(name), Config: config})
	}
	f.Now = time.Now()
	made, err := stub.Render(f.Options)
	if err != nil {
		return err
	}
	text, warnings, err := made.Write(stub.Form(f.form), f.secret)
	if err != nil {
		return err
	}
	for _, warning := range append(made.Warnings, warnings...) {
		fmt.Fprintln(command.ErrOrStderr(), "warning:", warning)
	}
	return write(f.output, text, command.OutOrStdout())
}

func seconds(flag string, d time.Duration) (int, error) {
	if d < 0 || d%time.Second != 0 {
		return 0, usage("%s %v: Ignition counts whole seconds", flag, d)
	}
	return int(d / time.Second), nil
}
