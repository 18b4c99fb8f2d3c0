// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/ignition-stub/doctor"
	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
	"github.com/mcsnap/mcsnap/ignition-stub/stub"
)

func doctorCommand() *cobra.Command {
	var o doctor.Options
	var form, repair string
	var caFiles []string
	command := &cobra.Command{
		Use:   "doctor STUB",
		Short: "Find out why machines with a stub do not come up",
		Long: `Walks from this host the way that a machine's Ignition goes: the stub, its token and CAs, the server's name, addresses
and certificate (verified with the stub's CAs only), the answer and how Ignition takes it, the config, the snapshot in
it, and every file it names. One verdict a line; "→" says what to do. STUB is a file with user-data as it is, in base64,
or in a Secret (kubectl get secret -o json); - is standard input.

When a CA was rotated and the user-data still has the old one, --ca FILE with the new CA prints the edit that repairs
the stub, and --repair writes the repaired stub.

Exit codes: 0 machines come up, 1 a check failed, 2 wrong usage, 4 a file cannot be read or written.`,
		Example: `  ignition-stub doctor worker.ign --platform aws
  kubectl -n openshift-machine-api get secret worker-user-data -o json | ignition-stub doctor -
  ignition-stub doctor worker.ign --ca new-ca.crt --repair worker-repaired.ign`,
		Args: oneArgument("the stub"),
		RunE: func(command *cobra.Command, args []string) error {
			text, err := readFile(args[0], command.InOrStdin())
			if err != nil {
				return err
			}
			for _, name := range caFiles {
				bundle, err := readFile(name, command.InOrStdin())
				if err != nil {
					return fmt.Errorf("--ca: %w", err)
				}
				if _, err := fetch.ParseCertificates(bundle); err != nil {
					return fmt.Errorf("--ca %s: %w", name, err)
				}
				o.CA = append(append(o.CA, bundle...), '\n')
			}
			userData := stub.Unwrap(text)
			report := doctor.Run(command.Context(), userData, o)
			if err := print(command.OutOrStdout(), form, report, report.Screen); err != nil {
				return err
			}
			if repair != "" {
				repaired, err := report.Repaired(userData)
				if err != nil {
					return fmt.Errorf("--repair: %w", err)
				}
				return write(repair, repaired, command.OutOrStdout())
			}
			if report.Failed() {
				return &toldError{errors.New("a check failed")}
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.Platform, "platform", "", "where the machines run: "+strings.Join(stub.PlatformNames(), ", "))
	flags.StringArrayVar(&caFiles, "ca", nil, "file with the CA that the server's certificate is from, to repair a stub with")
	flags.StringVar(&repair, "repair", "", "file to write the repaired stub to, mode 0600")
	flags.DurationVar(&o.BootBudget, "boot-budget", 2*time.Hour, "warn when the token expires sooner")
	flags.DurationVar(&o.Timeout, "timeout", 15*time.Second, "how long each step may take")
	flags.StringVarP(&form, "output", "o", "text", "text or json")
	complete(command, "platform", stub.PlatformNames()...)
	complete(command, "output", "text", "json")
	return command
}

// print writes a result as text for people, or as JSON.
func print(out io.Writer, form string, result any, screen func() string) error {
	switch form {
	case "text":
		_, err := io.WriteString(out, screen())
		return err
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(result)
	}
	return usage("-o %q: want text or json", form)
}

func oneArgument(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage("want one argument, %s; got %d", what, len(args))
		}
		return nil
	}
}
