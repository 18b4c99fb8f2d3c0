// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mcsnap/mcsnap/e2e/lab"
	"github.com/mcsnap/mcsnap/e2e/pages"
	"github.com/mcsnap/mcsnap/e2e/reference"
)

const (
	component = "../../deploy/components/monitoring/"
	runbooks  = "https://github.com/mcsnap/mcsnap/blob/main/docs/operations.md#"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func rules(t *testing.T) ([]Alert, []byte) {
	t.Helper()
	alerts, file, err := Rules(read(t, component+"prometheusrule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(alerts) == 0 {
		t.Fatal("no alerts")
	}
	return alerts, file
}

// promtool runs Debian's promtool on files in a folder.
func promtool(t *testing.T, files map[string][]byte, args ...string) (string, error) {
	t.Helper()
	program, err := lab.Find("promtool", "promtool")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Each alert fires on what it is for and not on what looks alike, says promtool; and each of them is missed when it is
// taken away, so none passes for lack of a case.
func TestAlertsFire(t *testing.T) {
	alerts, file := rules(t)
	cases := read(t, "testdata/alerts.yaml")
	judge := func(file []byte) (string, error) {
		return promtool(t, map[string][]byte{"mcsnap.rules.yaml": file, "alerts.yaml": cases}, "test", "rules", "alerts.yaml")
	}
	if out, err := judge(file); err != nil {
		t.Fatalf("promtool test rules: %v\n%s", err, out)
	}
	for i, alert := range alerts {
		for what, expr := range map[string]string{"never": "vector(0) > 1", "always": "vector(1)"} {
			broken := slices.Clone(alerts)
			broken[i].Expr = expr
			file, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "mcsnap", "rules": broken}}})
			if err != nil {
				t.Fatal(err)
			}
			if out, err := judge(file); err == nil || !strings.Contains(out, "FAILED") {
				t.Errorf("%s fires %s, and no case notices: %v\n%s", alert.Alert, what, err, out)
			}
		}
	}
}

// quoted is an expression's line, as the file has it.
func quoted(t *testing.T, expr string) []byte {
	t.Helper()
	line, err := yaml.Marshal(map[string]string{"expr": expr})
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// The line that operators without the Prometheus operator are told to run gives a file that promtool takes.
func TestPlainRules(t *testing.T) {
	text := read(t, component+"prometheusrule.yaml")
	command := regexp.MustCompile(`(?m)^#   (sed .*) prometheusrule\.yaml >mcsnap\.rules\.yaml$`).FindSubmatch(text)
	if command == nil {
		t.Fatal("prometheusrule.yaml no longer says how to make a plain file of it")
	}
	sed := exec.Command("sh", "-c", string(command[1]))
	sed.Stdin = bytes.NewReader(text)
	plain, err := sed.Output()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := promtool(t, map[string][]byte{"r.yaml": plain}, "check", "rules", "--lint=all", "--lint-fatal", "r.yaml"); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
}

// Alerts and dashboard ask only for what the code shows, in PromQL that Prometheus takes, and the dashboard shows all of it.
func TestQueries(t *testing.T) {
	known, err := reference.Metrics("../../mcs")
	if err != nil {
		t.Fatal(err)
	}
	alerts, _ := rules(t)
	for _, alert := range alerts {
		for _, fault := range Unknown(alert.Expr, slices.Collect(maps.Values(alert.Annotations)), known) {
			t.Errorf("%s: %s", alert.Alert, fault)
		}
	}
	queries, err := Queries(read(t, component+"dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	fmt.Fprintln(&file, "groups:\n- name: dashboard\n  rules:")
	for i, query := range queries {
		for _, fault := range Unknown(query, nil, known) {
			t.Errorf("dashboard: %s", fault)
		}
		fmt.Fprintf(&file, "  - record: panel:query:%d\n    %s", i, quoted(t, query))
	}
	if out, err := promtool(t, map[string][]byte{"d.yaml": file.Bytes()}, "check", "rules", "d.yaml"); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
	for _, m := range known {
		if !strings.Contains(strings.Join(queries, "\n"), m.Name) {
			t.Errorf("the dashboard does not show %s", m.Name)
		}
	}
}

func TestUnknown(t *testing.T) {
	known := []reference.Metric{{Name: "mcsnap_a_total", Kind: "counter", Labels: []string{"pool"}}, {Name: "mcsnap_t", Kind: "histogram"}}
	for query, want := range map[string]string{
		`sum by (pool) (rate(mcsnap_a_total{pool="x"}[5m]))`: "",
		`mcsnap_t_bucket{le="1"} and up{job="x"}`:            "",
		`mcsnap_b_total`:                 "no program shows the metric mcsnap_b_total",
		`mcsnap_a_total_bucket`:          "no program shows the metric",
		`mcsnap_a_total{code="x"}`:       "mcsnap_a_total has no label code",
		`sum by (code) (mcsnap_a_total)`: "nothing in it has the label code",
	} {
		got := strings.Join(Unknown(query, nil, known), "\n")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: found %q; want %q", query, got, want)
		}
	}
	if got := Unknown("mcsnap_t", []string{"{{ $labels.pool }}"}, known); len(got) != 1 {
		t.Errorf("a text with a label that is not there: %q", got)
	}
}

// Every alert has a severity, words and a runbook that names it, and every alert that the runbooks name is there.
func TestRunbooks(t *testing.T) {
	text := read(t, "../../docs/operations.md")
	sections := pages.Sections(text)
	alerts, _ := rules(t)
	names := map[string]bool{}
	for _, alert := range alerts {
		names[alert.Alert] = true
		if s := alert.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity %q; it is critical or warning", alert.Alert, s)
		}
		for _, needed := range []string{"summary", "description"} {
			if alert.Annotations[needed] == "" {
				t.Errorf("%s has no %s", alert.Alert, needed)
			}
		}
		anchor, ours := strings.CutPrefix(alert.Annotations["runbook_url"], runbooks)
		section, there := sections[anchor]
		if !ours || !there {
			t.Errorf("%s: runbook_url %q leads to no heading of docs/operations.md", alert.Alert, alert.Annotations["runbook_url"])
			continue
		}
		if !strings.Contains(section, "`"+alert.Alert+"`") {
			t.Errorf("%s: its runbook, #%s, does not name it", alert.Alert, anchor)
		}
	}
	for _, name := range regexp.MustCompile(`\bMcsnap[A-Z][A-Za-z]+`).FindAllString(string(text), -1) {
		if !names[name] {
			t.Errorf("docs/operations.md names the alert %s, which is not there", name)
		}
	}
}
