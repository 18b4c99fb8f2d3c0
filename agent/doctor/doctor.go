// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out, on a node that does not come up, who still has the config it needs (the disk, the snapshot,
// the server, the cluster), what differs by file, and the one action that is safe. It changes nothing and shows no
// content of any file.
package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/agent/root"
	"github.com/mcsnap/mcsnap/snapshot"
)

// Report is what was found.
type Report struct {
	Need        string   `json:"need"` // the config the node needs, by name and digest
	Sources     []Source `json:"sources"`
	Differences []string `json:"differences,omitempty"`
	Problems    []string `json:"problems,omitempty"`
	Action      string   `json:"action"`
}

// Source is one place that may have the config.
type Source struct {
	Name string `json:"name"` // disk, snapshot, server or cluster
	Has  bool   `json:"has"`  // whether it can supply what the node needs
	Open bool   `json:"open"` // whether that is not known: it could not be asked, or did not answer
	Says string `json:"says"`
}

// Ask asks the node's servers whether they still have a digest, and says what they answered when they do not. token is
// the content of the token file, "" without one.
type Ask func(ctx context.Context, config *handoff.Config, token string, digest snapshot.Digest) error

// Examine looks at a node. ask is nil when no server is to be asked, dump when there is no dump of the cluster.
func Examine(ctx context.Context, node *root.Root, ask Ask, dump *Dump) Report {
	status := handoff.Inspect(node)
	name, digest := need(status)
	report := Report{
		Need:     strings.TrimSpace(name + " " + string(digest)),
		Problems: status.Problems,
		Sources: []Source{
			disk(status, name),
			inSnapshot(status, name),
			server(ctx, node, ask, digest),
			cluster(dump, name, status.Snapshot.Opened),
		},
	}
	if report.Need == "" {
		report.Need = "unknown: neither the annotations file nor a snapshot says"
	}
	if s := status.Snapshot.Opened; s != nil {
		report.Differences = append(report.Differences, drift(node, s)...)
		if target := dump.target(s.Pool()); target != nil && target.Name() != s.Name() {
			report.Differences = append(report.Differences, against(s, target)...)
		}
	}
	report.Action = action(status, report.Sources)
	return report
}

func need(status handoff.Status) (string, snapshot.Digest) {
	if a := status.Annotations; a != nil && a.Config != "" {
		return a.Config, a.Digest
	}
	return status.Snapshot.Name, status.Snapshot.Digest
}

func disk(status handoff.Status, name string) Source {
	source := Source{Name: "disk", Says: fmt.Sprintf("%s is %s", handoff.CurrentPath, status.Current.Content)}
	switch status.Current.Content {
	case handoff.Whole, handoff.SameSpec:
		source.Has = true
	case handoff.Emptied:
		source.Says += ": upstream's first boot left the name and took the content"
	}
	if status.Current.Name != "" && status.Current.Name != name {
		source.Says += ": " + status.Current.Name
	}
	return source
}

func inSnapshot(status handoff.Status, name string) Source {
	s := status.Snapshot
	if !s.Verified {
		return Source{Name: "snapshot", Says: s.Problem}
	}
	source := Source{Name: "snapshot", Has: name == s.Name, Says: fmt.Sprintf("present, verified: %s %s", s.Name, s.Digest)}
	if !source.Has {
		source.Says += ", and the node needs another"
	}
	return source
}

func server(ctx context.Context, node *root.Root, ask Ask, digest snapshot.Digest) Source {
	// A server that says 503 may have it tomorrow, or another server today: only an answer that has it settles anything.
	source := Source{Name: "server", Open: true}
	config, err := handoff.ReadConfig(node)
	switch {
	case err != nil:
		source.Says = err.Error()
	case config == nil:
		source.Says = "not known: " + handoff.ConfigPath + " is missing"
	case digest == "":
		source.Open, source.Says = false, "not asked: no digest is known, and it gives nothing away by another name"
	case ask == nil:
		source.Says = "not asked: --offline"
	default:
		token, err := handoff.ReadToken(node)
		if err == nil {
			err = ask(ctx, config, token, digest)
		}
		if err != nil {
			source.Says = err.Error()
		} else {
			source.Has, source.Open, source.Says = true, false, "has "+string(digest)
		}
	}
	return source
}

// action is the one thing that is safe to do in this state.
func action(status handoff.Status, sources []Source) string {
	has := map[string]bool{}
	for _, source := range sources {
		has[source.Name] = source.Has
	}
	const firstboot = "systemctl restart mcsnap-firstboot.service"
	switch {
	case mixed(status):
		return "provision this node again: the snapshot and the annotations come from two different runs of Ignition"
	case status.Joined != "" && has["snapshot"]:
		return "none on this node: it has joined, and its daemon has what it needs in the snapshot; a daemon that asks only the cluster needs the overlay of snapshot/lister"
	case status.Joined != "":
		return "none on this node: it has joined (" + status.Joined + ")"
	case status.Current.Content == handoff.Whole && has["snapshot"]:
		return "none: the config is handed over; look at the daemon's own log"
	case has["snapshot"]:
		return "hand over: " + firstboot
	case has["server"]:
		return "fetch the snapshot by digest and hand over: " + firstboot
	case has["cluster"]:
		return "the cluster still has the object: have the server capture it (it does so by itself while it runs), then " + firstboot
	}
	var unknown []string
	for _, source := range sources {
		if source.Open {
			unknown = append(unknown, "the "+source.Name+" ("+source.Says+")")
		}
	}
	if len(unknown) > 0 {
		return "ask again before giving this node up: nothing is known of " + strings.Join(unknown, " and ")
	}
	return "provision this node again: nobody has its config any more"
}

func mixed(status handoff.Status) bool {
	a, s := status.Annotations, status.Snapshot
	return a != nil && s.Verified && (a.Config != "" && a.Config != s.Name || a.Digest != "" && a.Digest != s.Digest)
}
