// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/ignition-stub/cache"
	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
	"github.com/mcsnap/mcsnap/ignition-stub/resolve"
	"github.com/mcsnap/mcsnap/ignition-stub/stub"
	"github.com/mcsnap/mcsnap/snapshot"
)

type fetchFlags struct {
	resolve.Options
	access                     accessFlags
	raw, gzip                  bool
	digest, accept, cacheDir   string
	output, logFormat          string
	deadline, attempt, stalled time.Duration
}

func fetchCommand() *cobra.Command {
	f := &fetchFlags{}
	command := &cobra.Command{
		Use:   "fetch STUB | URL…",
		Short: "Fetch what a machine would fetch, and do not give up",
		Long: `Does with a stub (a file, or - for standard input) what Ignition does on a machine's first boot: follows merge and
replace, verifies, inflates, and writes the one config that results. With a URL in the stub's place it fetches that
config; several URLs are asked in turn. --inline puts the contents of remote files in too, so that the result needs no
network: for live installers, and for machines without one.

Where Ignition gives up (a 404, a body cut short) or never ends, this tries on until --deadline; docs/fetch-behaviour.md
says what it does with which answer. Each phase of trouble is told once.

Exit codes: 3 the stub or a config is not valid, 4 a file cannot be read or written, 5 no server gave it in time or all
refused, 6 content does not match its digest.`,
		Example: `  ignition-stub fetch worker.ign --inline -o /run/worker.ign
  ignition-stub fetch https://api-int.example.com:22623/config/worker --ca ca.crt --deadline 10m -o worker.ign
  ignition-stub fetch --raw https://api-int.example.com:22623/snapshot/sha256-… --ca ca.crt -o snapshot.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("name a stub, or the URL of a config")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error { return f.run(command, args) },
	}
	flags := command.Flags()
	f.access.register(flags, "with a URL: ")
	flags.BoolVar(&f.Inline, "inline", false, "put the contents of remote files into the config")
	flags.BoolVar(&f.raw, "raw", false, "fetch one document as it is, of whatever kind")
	flags.StringVar(&f.digest, "digest", "", "digest that the document of --raw must have, sha256-… or sha512-…")
	flags.StringVar(&f.accept, "accept", "", "newest spec version that the result's reader knows (default the stub's, or 3.4)")
	flags.BoolVar(&f.gzip, "gzip", false, "the URL's document is compressed")
	flags.StringVar(&f.cacheDir, "cache", "", "folder that keeps what was fetched, for when no server can be reached")
	flags.DurationVar(&f.deadline, "deadline", 3*time.Hour, "how long to try in all, for each document")
	flags.DurationVar(&f.attempt, "attempt-timeout", 30*time.Second, "how long one attempt may take until its answer begins")
	flags.DurationVar(&f.stalled, "stall-timeout", 20*time.Second, "how long an answer may stand still")
	flags.StringVarP(&f.output, "output", "o", "", "file to write, mode 0600 (default standard output)")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	complete(command, "accept", "3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6")
	complete(command, "log-format", "text", "json")
	return command
}

func (f *fetchFlags) run(command *cobra.Command, args []string) error {
	log, err := logger(command.ErrOrStderr(), f.logFormat)
	if err != nil {
		return err
	}
	f.Log = log
	if f.deadline <= 0 || f.attempt <= 0 || f.stalled <= 0 {
		return usage("a timeout of nothing leaves no time to fetch; give durations like 30s or 2h")
	}
	f.Fetch = fetch.Options{Deadline: f.deadline, AttemptTimeout: f.attempt, StallTimeout: f.stalled, Log: log, Progress: progress(command.ErrOrStderr())}
	if f.raw {
		return f.runRaw(command, args)
	}
	if f.digest != "" {
		return usage("--digest is for --raw; a config's digest stands in the stub's verification")
	}
	if f.cacheDir != "" {
		kept, err := cache.Open(f.cacheDir)
		if err != nil {
			return err
		}
		f.Cache = kept
	}
	if f.accept != "" {
		version, err := stub.ParseVersion(f.accept)
		if err != nil {
			return err
		}
		f.Accept = string(version)
	}
	config, err := f.stub(command, args)
	if err != nil {
		return err
	}
	result, err := resolve.Resolve(command.Context(), config, f.Options)
	if err != nil {
		return err
	}
	if err := sayWhat(log, result); err != nil {
		return err
	}
	return write(f.output, result.Config, command.OutOrStdout())
}

// stub is the one that was given, or one made from the URLs.
func (f *fetchFlags) stub(command *cobra.Command, args []string) ([]byte, error) {
	if !isURL(args[0]) {
		if len(args) > 1 || f.access.given() || f.gzip {
			return nil, usage("a stub says itself whom to ask and what to show; give a stub alone, or URLs with --ca, --token-file and --gzip")
		}
		return readFile(args[0], command.InOrStdin())
	}
	access, err := f.access.read(command.InOrStdin())
	if err != nil {
		return nil, err
	}
	o := access.options()
	o.URL, o.Gzip = args[0], f.gzip
	if f.Accept != "" {
		o.Version = stub.Version(f.Accept)
	}
	f.Also = args[1:]
	made, err := stub.Render(o)
	if err != nil {
		return nil, err
	}
	return withoutToken(made.JSON)
}

// withoutToken takes out the file that a stub leaves on a machine: the result of a fetch is what the server sent.
func withoutToken(made []byte) ([]byte, error) {
	var config map[string]json.RawMessage
	if err := json.Unmarshal(made, &config); err != nil {
		return nil, err
	}
	delete(config, "storage")
	return json.Marshal(config)
}

func (f *fetchFlags) runRaw(command *cobra.Command, args []string) error {
	if !isURL(args[0]) || f.Inline || f.cacheDir != "" {
		return usage("--raw fetches a URL as it is; no stub, no --inline, no --cache")
	}
	access, err := f.access.read(command.InOrStdin())
	if err != nil {
		return err
	}
	f.Fetch.CA, f.Fetch.Header = access.ca(), http.Header{}
	if name, value := access.header(); name != "" {
		f.Fetch.Header.Set(name, value)
	}
	fetcher, err := fetch.New(f.Fetch)
	if err != nil {
		return err
	}
	defer fetcher.Close()
	result, err := fetcher.Get(command.Context(), fetch.Request{URLs: args, Digest: f.digest})
	if err != nil {
		return err
	}
	return write(f.output, result.Body, command.OutOrStdout())
}

// sayWhat tells what was fetched, and refuses a config whose snapshot is not what its digest says.
func sayWhat(log *slog.Logger, result *resolve.Result) error {
	for _, source := range result.Sources {
		log.Info("fetched", "what", source.What, "url", source.URL, "bytes", source.Bytes, "attempts", source.Attempts, "cached", source.Cached)
	}
	s, err := snapshot.Extract(result.Config)
	if _, none := errors.AsType[*snapshot.NoSnapshotError](err); none {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the snapshot in the config: %w", err)
	}
	log.Info("the config carries its snapshot", "pool", s.Pool(), "config", s.Name(), "digest", string(s.Digest()))
	return nil
}

func isURL(arg string) bool { return strings.Contains(arg, "://") }

func logger(out io.Writer, format string) (*slog.Logger, error) {
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(out, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(out, nil)), nil
	}
	return nil, usage("--log-format %q: want text or json", format)
}
