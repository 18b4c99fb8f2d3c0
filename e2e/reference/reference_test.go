// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/commands/tree"
)

// Every way in which our code writes metrics down is read, and one that cannot be is no silence.
func TestMetrics(t *testing.T) {
	const head = "package p\n\nconst space = \"x\"\n\nfunc f(given string) {\n"
	for name, c := range map[string]struct{ code, want string }{
		"a counter":          {`prometheus.NewCounter(prometheus.CounterOpts{Namespace: space, Name: "a_total", Help: "b."})`, "{x_a_total counter b. []}"},
		"a vector":           {`prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "a", Help: "b" + "c"}, []string{"l", "m"})`, "{a gauge bc [l m]}"},
		"a description":      {`prometheus.NewDesc("x_a", "b", []string{"l"}, nil)`, "{x_a gauge b [l]}"},
		"a function's":       {`m := func(n, h string) { prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "x", Name: n, Help: h}, []string{"l"}) }` + "\n" + `m("a", "b")`, "{x_a gauge b [l]}"},
		"with its labels":    {`m := func(n, h string, l ...string) { prometheus.NewCounterVec(prometheus.CounterOpts{Name: n, Help: h}, l) }` + "\n" + `m("a", "b", "l", "m")`, "{a counter b [l m]}"},
		"a name not at hand": {`prometheus.NewCounter(prometheus.CounterOpts{Name: given + "x", Help: "b"})`, "write them as text"},
		"no help":            {`prometheus.NewCounter(prometheus.CounterOpts{Name: "a"})`, "write them as text"},
		"something else":     {`prometheus.NewRegistry(); other.NewCounter(other.CounterOpts{})`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(head+c.code+"\n}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := Metrics(dir)
			said := strings.Trim(fmt.Sprint(found), "[]") + "]}"
			switch {
			case err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)):
				t.Error(err)
			case err == nil && (len(found) != 1 || !strings.HasPrefix(said, c.want)) && (c.want != "" || len(found) > 0):
				t.Errorf("found %v; want %s", found, c.want)
			}
		})
	}
}

func TestRender(t *testing.T) {
	program := &tree.Command{Name: "mcs", Short: "Serve", Runs: true, Flags: []tree.Flag{{Name: "config", Meaning: "a file"}}, Commands: []*tree.Command{
		{Name: "completion", Short: "Complete", Runs: true},
		{Name: "serve", Short: "Do it", Runs: true, Flags: []tree.Flag{
			{Name: "config", Meaning: "a file"},
			{Name: "help", Meaning: "help"},
			{Name: "gate", Short: "g", Meaning: "this | that", Default: "this", Env: "MCS_SERVE_GATE", Key: "serve.gate"},
			{Name: "most", Meaning: "how many (default 5)", Default: "0", Env: "MCS_SERVE_MOST", Key: "serve.most"},
		}},
	}}
	got := string(Render([]*tree.Command{program}, []Metric{{"x_a", "gauge", "What a is.", []string{"l", "m"}}}))
	for _, want := range []string{
		"\n## mcs\n", "\n## mcs serve\n\nDo it.\n",
		"\n| `-g`, `--gate` | `MCS_SERVE_GATE` | `serve.gate` | `this` | this \\| that |\n",
		"\n| `--most` | `MCS_SERVE_MOST` | `serve.most` | 5 | how many |\n",
		"\n| `x_a` | gauge | `l`, `m` | What a is |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "completion") || strings.Contains(got, "--help`") || strings.Count(got, "| `--config`") != 1 {
		t.Errorf("what every program has is there, or what is inherited is there twice:\n%s", got)
	}
}
