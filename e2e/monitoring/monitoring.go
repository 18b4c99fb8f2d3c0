// SPDX-License-Identifier: Apache-2.0

// Package monitoring judges deploy/components/monitoring: that its alerts and its dashboard ask for metrics and labels
// that mcs shows, that every alert has a runbook, and, with promtool, that each alert fires when it should. It runs no
// Prometheus.
package monitoring

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/mcsnap/mcsnap/e2e/reference"
)

// Alert is one alerting rule.
type Alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// Rules takes the rules out of a PrometheusRule object, and their groups as a file that Prometheus itself reads.
func Rules(object []byte) (alerts []Alert, file []byte, err error) {
	var rule struct {
		Spec struct {
			Groups []struct {
				Rules []Alert `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(object, &rule); err != nil {
		return nil, nil, fmt.Errorf("read the PrometheusRule: %w", err)
	}
	for _, group := range rule.Spec.Groups {
		alerts = append(alerts, group.Rules...)
	}
	var whole struct {
		Spec map[string]any `json:"spec"`
	}
	if err := yaml.Unmarshal(object, &whole); err != nil {
		return nil, nil, err
	}
	file, err = yaml.Marshal(whole.Spec)
	return alerts, file, err
}

// Queries are the questions that a Grafana dashboard asks, with Grafana's own variable replaced.
func Queries(dashboard []byte) (queries []string, err error) {
	var board struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(dashboard, &board); err != nil {
		return nil, fmt.Errorf("read the dashboard: %w", err)
	}
	for _, panel := range board.Panels {
		if len(panel.Targets) == 0 {
			return nil, fmt.Errorf("panel %q asks nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			queries = append(queries, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
		}
	}
	return queries, nil
}

var (
	metric   = regexp.MustCompile(`\b(mcsnap_[a-z0-9_]+|up)\b(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"`)
	grouping = regexp.MustCompile(`\b(?:by|on|without|ignoring)\s*\(([^)]*)\)`)
	template = regexp.MustCompile(`\$labels\.([a-z_]+)`)
	made     = regexp.MustCompile(`_(bucket|sum|count)$`) // what a histogram makes of its name
)

// Unknown names what a question in PromQL asks for that no program shows: metrics, and labels that neither the metrics
// in it have nor Prometheus adds. With it go the texts in which the answer's labels are named.
func Unknown(query string, texts []string, known []reference.Metric) (faults []string) {
	labels := map[string]bool{"job": true, "instance": true, "le": true}
	for _, m := range metric.FindAllStringSubmatch(query, -1) {
		at := slices.IndexFunc(known, func(k reference.Metric) bool {
			return k.Name == m[1] || k.Kind == "histogram" && k.Name == made.ReplaceAllString(m[1], "")
		})
		switch {
		case m[1] == "up":
			continue
		case at < 0:
			faults = append(faults, fmt.Sprintf("%s: no program shows the metric %s", query, m[1]))
			continue
		}
		own := maps.Clone(labels)
		for _, label := range known[at].Labels {
			own[label], labels[label] = true, true
		}
		for _, asked := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !own[asked[1]] {
				faults = append(faults, fmt.Sprintf("%s: %s has no label %s", query, m[1], asked[1]))
			}
		}
	}
	for _, group := range grouping.FindAllStringSubmatch(query, -1) {
		for _, label := range strings.Split(group[1], ",") {
			if label = strings.TrimSpace(label); label != "" && !labels[label] {
				faults = append(faults, fmt.Sprintf("%s: nothing in it has the label %s", query, label))
			}
		}
	}
	for _, text := range texts {
		for _, label := range template.FindAllStringSubmatch(text, -1) {
			if !labels[label[1]] {
				faults = append(faults, fmt.Sprintf("%s: its text names the label %s, which nothing in it has", query, label[1]))
			}
		}
	}
	return faults
}
