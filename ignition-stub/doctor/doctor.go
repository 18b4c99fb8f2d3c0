// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out why machines with a stub do not come up: it walks the way a machine's Ignition goes, from the
// stub to the snapshot in the config, and says at each step what it saw and what to do about it. It looks, once, and
// changes nothing; it never fetches without verifying, and shows the token to nobody whose certificate it does not trust.
package doctor

import (
	"context"
	"net"
	"time"
)

// Verdict is how a check ended.
type Verdict string

// The verdicts. Fail means that machines will not come up.
const (
	OK   Verdict = "ok"
	Warn Verdict = "warn"
	Fail Verdict = "FAIL"
	None Verdict = "-" // not looked at, since a check before it failed, or there is nothing to look at
)

// Check is one line of the report.
type Check struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
	Remedy  string  `json:"remedy,omitempty"` // what to do about it
}

// Report is what was found.
type Report struct {
	Checks []Check `json:"checks"`
	// Repair is a JSON Patch (RFC 6902) that makes the stub work, where one is known.
	Repair []Patch `json:"repair,omitempty"`
}

// Patch is one operation of a JSON Patch.
type Patch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Failed tells whether any check failed.
func (r *Report) Failed() bool {
	for _, c := range r.Checks {
		if c.Verdict == Fail {
			return true
		}
	}
	return false
}

// Options say how to look.
type Options struct {
	// Platform is where the machines run; empty weighs the stub against all platforms.
	Platform string
	// CA is what the server's certificate should descend from, in PEM, where the operator knows. It is how a stub with an
	// outdated CA is repaired.
	CA []byte
	// BootBudget is how long a machine may take to fetch: tokens that expire sooner are warned of. 0 means 2 hours.
	BootBudget time.Duration
	// Timeout bounds each step. 0 means 15 seconds: Ignition waits 10 for an answer's headers.
	Timeout time.Duration
	// Now is the clock. Nil means the real one.
	Now func() time.Time
	// Resolver looks names up. Nil means the system's.
	Resolver interface {
		LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error)
	}
}

// Names of the checks, in the order they are made.
var Names = []string{"stub", "size", "token", "CA", "name", "address", "certificate", "answer", "latency", "clock",
	"versions", "config", "snapshot", "files"}

// Run makes all checks. It always ends with a report; what could not be looked at is [None] and says why.
func Run(ctx context.Context, stub []byte, o Options) *Report {
	if o.BootBudget == 0 {
		o.BootBudget = 2 * time.Hour
	}
	if o.Timeout == 0 {
		o.Timeout = 15 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	e := &exam{Options: o, ctx: ctx, raw: stub, report: &Report{}}
	for _, look := range []func() bool{
		e.lookAtStub, e.lookAtCAs, e.lookUp, e.connect, e.lookAtCertificate, e.ask, e.askForVersions, e.lookInside, e.lookAtFiles,
	} {
		if !look() {
			break
		}
	}
	e.report.fill()
	return e.report
}

// exam is one Run under way. Its steps return false when nothing after them can be looked at.
type exam struct {
	Options
	ctx    context.Context
	raw    []byte
	report *Report

	stub   pointer
	target target
	trust  trust
	answer answer
}

func (e *exam) say(name string, verdict Verdict, text string) {
	e.report.Checks = append(e.report.Checks, Check{Name: name, Verdict: verdict, Text: text})
}

func (e *exam) fail(name, text, remedy string) bool {
	e.report.Checks = append(e.report.Checks, Check{name, Fail, text, remedy})
	return false
}

func (e *exam) warn(name, text, remedy string) {
	e.report.Checks = append(e.report.Checks, Check{name, Warn, text, remedy})
}

// fill has every check in the report once, in order.
func (r *Report) fill() {
	broken := ""
	var checks []Check
	for _, name := range Names {
		found := false
		for _, c := range r.Checks {
			if c.Name == name {
				checks, found = append(checks, c), true
				if c.Verdict == Fail {
					broken = name
				}
			}
		}
		if !found {
			text := "nothing to look at"
			if broken != "" {
				text = "not looked at: mend " + broken + " first"
			}
			checks = append(checks, Check{Name: name, Verdict: None, Text: text})
		}
	}
	r.Checks = checks
}
