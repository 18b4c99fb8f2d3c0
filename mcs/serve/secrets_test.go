// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"github.com/mcsnap/mcsnap/mcs/publish"
	"github.com/mcsnap/mcsnap/mcs/specver"
)

// canaries are secrets in every place a client or a config may put one.
var canaries = []string{"CANARY-token", "CANARY-body", "CANARY-query", "CANARY-cookie", "CANARY-header"}

// Secrets never reach logs, errors, metrics or refusals, at any level and in either format of the log.
func TestSecretsAreNotTold(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var log bytes.Buffer
		everything := &slog.HandlerOptions{Level: slog.Level(math.MinInt), AddSource: true}
		var handler slog.Handler = slog.NewTextHandler(&log, everything)
		if format == "json" {
			handler = slog.NewJSONHandler(&log, everything)
		}
		gates := []Gate{
			{}, {Tokens: tokens{}}, {Tokens: tokens{}, Final: true}, {Tokens: tokens{}, LogOnly: true},
			{Tokens: tokens{"CANARY-token": true}}, {Deny: prefixes("0.0.0.0/0")},
		}
		for _, gate := range gates {
			f := newFixture(t, func(c *Config) {
				c.Log, c.Gate = slog.New(handler), gate
				c.Snapshots = content{broken: errors.New("disk")}
			})
			a := answerFor("worker", specver.V3_4)
			for v := range a.Bodies {
				a.Bodies[v] = bodyOf(v, `{"x":"CANARY-body"}`)
			}
			f.answers.set(a)
			f.answers.set(&publish.Answer{Pool: "down", Code: publish.CodePool, Reason: "broken; mend it"})
			for _, path := range []string{
				"/config/worker", "/config/worker.gz", "/config/down", "/config/none", "/config/", "/nothing",
				"/snapshot/sha256-" + strings.Repeat("0", 64), "/agent/x", "/readyz", "/healthz",
			} {
				for _, method := range []string{"GET", "HEAD", "POST"} {
					for _, accept := range []string{"*/*", "application/vnd.coreos.ignition+json;version=4.0.0", "CANARY-header"} {
						got := f.do(method, path+"?token=CANARY-query", "Authorization: Bearer CANARY-token", "Cookie: CANARY-cookie",
							"X-Forwarded-For: CANARY-header", "Referer: CANARY-header", "Accept: "+accept)
						reply := fmt.Sprint(got.Header)
						if got.StatusCode >= 400 {
							reply += text(t, got)
						}
						refuseCanaries(t, "an answer", reply)
					}
				}
			}
			families, err := f.registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			var metrics bytes.Buffer
			for _, family := range families {
				if _, err := expfmt.MetricFamilyToText(&metrics, family); err != nil {
					t.Fatal(err)
				}
			}
			refuseCanaries(t, "the metrics", metrics.String())
		}
		refuseCanaries(t, "the log", log.String())
		if !strings.Contains(log.String(), "/config/") && !strings.Contains(log.String(), "worker") {
			t.Error("the log is empty: the test shows nothing")
		}
	}
}

func refuseCanaries(t *testing.T, where, text string) {
	t.Helper()
	for _, canary := range canaries {
		if i := strings.Index(text, canary); i >= 0 {
			t.Fatalf("%s holds %s: …%s…", where, canary, text[max(0, i-80):min(len(text), i+80)])
		}
	}
}

// What a client sends is cut short and made printable before it is logged (field case 57: the log is read by tools).
func TestLogOfARequest(t *testing.T) {
	f := newFixture(t, nil)
	f.do("GET", "/config/worker", "User-Agent: Ignition/2.26.0\r\nforged=\"yes\" \x1b[31m"+strings.Repeat("x", 500), "Mcsnap-Client: rack-7\x00")
	line := ""
	for l := range strings.Lines(f.log.String()) {
		if strings.Contains(l, "msg=request") {
			line = strings.TrimSpace(l)
		}
	}
	for _, want := range []string{
		"route=config", "method=GET", "pool=worker", "rendered=rendered-worker", "digest=" + string(testDigest), "version=3.5.0",
		"address=192.0.2.1:1234", "client=rack-7?", `user_agent="Ignition/2.26.0??forged=\"yes\" ?[31mxxx`, "bytes=32", "duration=", "status=200", `reason=""`,
	} {
		if !strings.Contains(line, want) {
			t.Errorf("no %s in %s", want, line)
		}
	}
	if len(line) > 700 || strings.ContainsAny(line, "\x1b\r\x00") {
		t.Errorf("%d bytes: %q", len(line), line)
	}
}

// promlint finds nothing to say about the metrics.
func TestMetricsAreClean(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Gate = Gate{Deny: prefixes("0.0.0.0/0"), LogOnly: true} })
	RegisterBuildInfo(f.registry, "test")
	for _, path := range []string{"/config/worker", "/config/none", "/snapshot/x", "/readyz"} {
		f.do("GET", path)
	}
	problems, err := testutil.GatherAndLint(f.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
