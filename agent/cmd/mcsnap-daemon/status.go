// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/agent/command"
	"github.com/mcsnap/mcsnap/agent/daemon/change"
	"github.com/mcsnap/mcsnap/agent/daemon/node"
	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
)

// status is how far a node is. It holds no contents of any file.
type status struct {
	Current     *current           `json:"current,omitempty"` // absent when it is lost: Problems says why
	Update      *change.Unfinished `json:"update,omitempty"`
	BootPending bool               `json:"bootPending"`
	Drift       []string           `json:"drift"`
	Node        *node.Says         `json:"node,omitempty"` // absent when the cluster was not asked, or gave no answer
	Problems    []string           `json:"problems,omitempty"`
}

type current struct {
	Name     string          `json:"name"`
	Pool     string          `json:"pool"`
	Digest   snapshot.Digest `json:"digest"`
	Source   string          `json:"source"` // the file that says so
	Overlays []string        `json:"overlays,omitempty"`
}

func statusCommand(f *flags) *cobra.Command {
	var output string
	var offline bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Tell which config this node is at, what drifted, and what its annotations say",
		Long: `Reads the node's files and its annotations, and tells which config the node is at
and by which file, whether an update is under way or waits for a reboot, and which
paths and units are no longer as that config has them. Nothing is written, and no
content of a file is printed. What cannot be read or asked is listed as a problem.`,
		Example: `  mcsnap-daemon status
  mcsnap-daemon status --offline
  mcsnap-daemon status -o json | jq -r '.drift[]'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return command.WithRoot(f.root, func(at *root.Root) error {
				options, closeUnits, err := f.options(cmd.Context(), at, slog.New(slog.DiscardHandler))
				if err != nil {
					return err
				}
				defer closeUnits()
				s := inspect(cmd.Context(), options)
				if !offline {
					f.ask(cmd.Context(), options, &s)
				}
				return command.Print(cmd, output, s, func(w io.Writer) { writeStatus(w, s) })
			})
		},
	}
	f.cluster(cmd)
	cmd.Flags().BoolVar(&offline, "offline", false, "do not ask the cluster")
	command.Output(cmd, &output)
	return cmd
}

// inspect looks at the node's own files.
func inspect(ctx context.Context, options node.Options) status {
	s := status{Drift: []string{}}
	note := func(err error) {
		if err != nil {
			s.Problems = append(s.Problems, err.Error())
		}
	}
	var err error
	s.Update, err = options.Updater.Cut()
	note(err)
	is, err := options.Updater.Current()
	if err != nil {
		note(err)
		return s
	}
	s.Current = &current{Name: is.Name(), Pool: is.Pool(), Digest: is.Digest(), Source: options.Updater.Source(is)}
	for _, overlay := range is.Overlays() {
		s.Current.Overlays = append(s.Current.Overlays, overlay.Path)
	}
	s.BootPending, err = node.BootPending(options)
	note(err)
	if s.Update == nil { // half-way there is nothing to compare with
		drift, err := options.Updater.Differences(ctx)
		note(err)
		s.Drift = append(s.Drift, drift...)
	}
	return s
}

// ask asks the cluster what the node says of itself.
func (f *flags) ask(ctx context.Context, options node.Options, s *status) {
	ctx, cancel := context.WithTimeout(ctx, askDeadline)
	defer cancel()
	var err error
	if options.Cluster, options.Name, err = f.connect(); err == nil {
		var says node.Says
		if says, err = node.Ask(ctx, options); err == nil {
			s.Node = &says
			return
		}
	}
	s.Problems = append(s.Problems, err.Error())
}

func writeStatus(w io.Writer, s status) {
	line := func(about, format string, args ...any) { command.Line(w, about, format, args...) }
	if c := s.Current; c == nil {
		line("current", "not known")
	} else {
		line("current", "%s of pool %s, %s", c.Name, c.Pool, c.Digest)
		line("said by", "%s", c.Source)
		for _, path := range c.Overlays {
			line("overlay", "%s was served newer than rendered", path)
		}
	}
	if u := s.Update; u != nil {
		doing := "under way or cut"
		if u.Back {
			doing = "being taken back, because: " + u.Reason
		}
		line("update", "from %s to %s, %s", u.From, u.To, doing)
	}
	if s.BootPending {
		line("reboot", "wanted: the config was applied in this boot")
	}
	for _, drifted := range s.Drift {
		line("drift", "%s", drifted)
	}
	if s.Current != nil && s.Update == nil && len(s.Drift) == 0 {
		line("drift", "none")
	}
	if n := s.Node; n != nil {
		line("desired", "%s", n.Desired)
		line("state", "%s", strings.TrimSuffix(string(n.State)+": "+n.Reason, ": "))
	}
	for _, problem := range s.Problems {
		line("problem", "%s", problem)
	}
}
