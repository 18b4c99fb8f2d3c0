// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// taken is what the commands of the tests have in the end.
type taken struct {
	state, gate, name string
	listen, pools     []string
	open              bool
	most              int
	keep              time.Duration
}

func commands(got *taken) *cobra.Command {
	root := &cobra.Command{Use: "mcs", SilenceErrors: true, SilenceUsage: true}
	serve := &cobra.Command{
		Use: "serve",
		PreRunE: func(*cobra.Command, []string) error {
			if got.gate != "enforce" && got.gate != "log" {
				return fmt.Errorf("--gate %s: use enforce or log", got.gate)
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	serve.Flags().StringVar(&got.state, "state-dir", "/var/lib/mcs", "")
	serve.Flags().StringVar(&got.gate, "gate", "enforce", "")
	serve.Flags().StringVar(&got.name, "name", "", "")
	serve.Flags().StringArrayVar(&got.listen, "listen", []string{":1"}, "")
	serve.Flags().StringSliceVar(&got.pools, "pools", nil, "")
	serve.Flags().BoolVar(&got.open, "open", true, "")
	serve.Flags().IntVar(&got.most, "most", 5, "")
	store := &cobra.Command{Use: "store", RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	prune := &cobra.Command{Use: "prune", RunE: func(*cobra.Command, []string) error { return nil }}
	prune.Flags().String("state-dir", "/var/lib/mcs", "")
	prune.Flags().DurationVar(&got.keep, "keep", time.Hour, "")
	store.AddCommand(prune)
	root.AddCommand(serve, store)
	Bind(root, "state-dir")
	return root
}

// run runs the commands with a file, unless it is empty, and the environment.
func run(t *testing.T, file string, environment map[string]string, args ...string) (*taken, string, error) {
	t.Helper()
	if file != "" {
		name := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", name)
	}
	for name, text := range environment {
		t.Setenv(name, text)
	}
	var out bytes.Buffer
	got := &taken{}
	root := commands(got)
	root.SetOut(&out)
	root.SetArgs(args)
	err := root.Execute()
	return got, out.String(), err
}

// The command line wins over the environment, the environment over the file, the file over the default.
func TestPrecedence(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		env  map[string]string
		args []string
		want string
	}{
		"the default":             {want: "[:1] enforce /var/lib/mcs"},
		"the file":                {file: "state-dir: /a\nserve: {listen: [':2', ':3'], gate: log}", want: "[:2 :3] log /a"},
		"the environment":         {file: "serve: {listen: [':2']}", env: map[string]string{"MCS_SERVE_LISTEN": ":4,:5", "MCS_STATE_DIR": "/b"}, want: "[:4 :5] enforce /b"},
		"the command line":        {file: "serve: {listen: [':2'], gate: log}", env: map[string]string{"MCS_SERVE_LISTEN": ":4"}, args: []string{"--listen", ":6", "--listen=:7"}, want: "[:6 :7] log /var/lib/mcs"},
		"the default, said again": {file: "serve: {listen: [':2']}", args: []string{"--listen=:1"}, want: "[:1] enforce /var/lib/mcs"},
		"nothing, said":           {file: "serve: {listen: []}", env: map[string]string{"MCS_STATE_DIR": ""}, want: "[] enforce "},
		"an empty variable":       {file: "serve: {listen: [':2']}", env: map[string]string{"MCS_SERVE_LISTEN": ""}, want: "[] enforce /var/lib/mcs"},
		"other commands' keys":    {file: "store: {prune: {keep: 2h}}", want: "[:1] enforce /var/lib/mcs"},
		"a Service called mcs":    {env: map[string]string{"MCS_PORT": "tcp://10.0.0.1:22623", "MCS_SERVICE_HOST": "10.0.0.1", "MCS_SERVICE_PORT_HTTPS": "1", "MCS_PORT_22623_TCP_ADDR": "10.0.0.1"}, want: "[:1] enforce /var/lib/mcs"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := run(t, c.file, c.env, append([]string{"serve"}, c.args...)...)
			if shown := fmt.Sprint(got.listen, " ", got.gate, " ", got.state); err != nil || shown != c.want {
				t.Errorf("%s, %v; want %s", shown, err, c.want)
			}
		})
	}
}

func TestEveryKind(t *testing.T) {
	got, _, err := run(t, `
serve:
  name: 1.20   # text, though it looks like a number
  open: false
  most: 7
  pools: [&a worker, *a, 1]
store:
  prune:
    keep: 90m
`, nil, "serve")
	if shown := fmt.Sprint(got.name, " ", got.open, got.most, got.pools); err != nil || shown != "1.20 false 7 [worker worker 1]" {
		t.Errorf("%s, %v", shown, err)
	}
	got, _, err = run(t, "", map[string]string{
		"MCS_SERVE_OPEN": "false", "MCS_SERVE_MOST": "7", "MCS_SERVE_POOLS": `a,"b,c"`, "MCS_STORE_PRUNE_KEEP": "90m",
	}, "serve")
	if shown := fmt.Sprint(got.open, got.most, len(got.pools)); err != nil || shown != "false 7 2" {
		t.Errorf("%s, %v", shown, err)
	}
	if got, _, err = run(t, "", map[string]string{"MCS_STORE_PRUNE_KEEP": "90m"}, "store", "prune"); err != nil || got.keep != 90*time.Minute {
		t.Errorf("%v, %v", got.keep, err)
	}
}

// What is wrong names the file and line or the variable, the key, and what to write instead.
func TestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		env  map[string]string
		want string
	}{
		"a misspelt key":             {file: "serve:\n  lisen: [a]", want: "c.yaml:2: serve.lisen: no such key; the nearest is serve.listen"},
		"a misspelt section":         {file: "server: {}", want: "c.yaml:1: server: no such key; the nearest is serve"},
		"a key in no section":        {file: "listen: [a]", want: "listen: no such key; it is said as serve.listen"},
		"a key of the top":           {file: "serve: {state-dir: /a}", want: "serve.state-dir: no such key; it is said as state-dir"},
		"a key below a value":        {file: "serve: {gate: {x: 1}}", want: "serve.gate: cannot be a section"},
		"a key that is twice":        {file: "serve:\n  gate: log\n  gate: log", want: "c.yaml:3: serve.gate: stands here a second time"},
		"a key with dots":            {file: "serve.gate: log", want: "has a dot; write a section"},
		"text for a list":            {file: "serve: {listen: ':1'}", want: `serve.listen: cannot be ":1"; write a list`},
		"a list of lists":            {file: "serve: {listen: [[a]]}", want: "serve.listen: cannot be a list; write a list of text"},
		"a list for text":            {file: "serve: {gate: [a]}", want: "serve.gate: cannot be a list; write text"},
		"a truth for text":           {file: "serve: {gate: true}", want: `serve.gate: cannot be "true"; write text, in quotes`},
		"a yes for a truth":          {file: "serve: {open: yes}", want: `serve.open: cannot be "yes"; write true or false`},
		"a time without its unit":    {file: "store: {prune: {keep: 90}}", want: `store.prune.keep: cannot be "90"; write a time with its unit`},
		"a fraction for a number":    {file: "serve: {most: 1.5}", want: `serve.most: cannot be "1.5"; write a whole number`},
		"nothing for a value":        {file: "serve:\n  gate:", want: "serve.gate: cannot be empty"},
		"no section":                 {file: "serve: [a]", want: "serve: cannot be a list; write a section"},
		"no keys":                    {file: "just text", want: `c.yaml:1: cannot be "just text"; write a section`},
		"a second document":          {file: "serve: {}\n---\nserve: {}", want: "leave one"},
		"no YAML":                    {file: "serve: [", want: "mend the YAML"},
		"an alias to itself":         {file: "serve: &a {listen: [*a]}", want: "serve.listen: cannot be a section"},
		"a merge":                    {file: "serve: {<<: {gate: log}}", want: "serve.<<: no such key"},
		"a misspelt variable":        {env: map[string]string{"MCS_SERVE_LISEN": "a"}, want: "environment: MCS_SERVE_LISEN: no setting has this variable; the nearest is MCS_SERVE_LISTEN"},
		"a variable of no number":    {env: map[string]string{"MCS_SERVE_MOST": "many"}, want: `MCS_SERVE_MOST: cannot be "many"; write a whole number`},
		"an empty variable":          {env: map[string]string{"MCS_SERVE_OPEN": ""}, want: "MCS_SERVE_OPEN: cannot be empty; write true or false"},
		"a broken list":              {env: map[string]string{"MCS_SERVE_LISTEN": `"a`}, want: "MCS_SERVE_LISTEN: is no list"},
		"two lines":                  {env: map[string]string{"MCS_SERVE_LISTEN": "a\nb"}, want: "MCS_SERVE_LISTEN: is no list"},
		"a value that means nothing": {file: "serve:\n  gate: maybe", want: "--gate maybe: use enforce or log (--gate is said in "},
		"the same by a variable":     {env: map[string]string{"MCS_SERVE_GATE": "maybe"}, want: "(--gate is said in MCS_SERVE_GATE)"},
		"a comment alone":            {file: "# nothing\n", want: ""},
		"a section of comments":      {file: "serve:\n  # gate: log\n", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(t, c.file, c.env, "serve")
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("said %v; want %s", err, c.want)
			}
		})
	}
}

// A password in a URL is in no error and in nothing that is shown.
func TestPasswords(t *testing.T) {
	const file = "serve:\n  name: https://user:SECRET@example.com\n  most: https://user:SECRET@example.com\n"
	_, _, err := run(t, file, nil, "serve")
	if err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Error(err)
	}
	_, shown, err := run(t, "serve: {name: 'https://user:SECRET@example.com'}", nil, "config", "show")
	if err != nil || strings.Contains(shown, "SECRET") || !strings.Contains(shown, "https://(hidden)@example.com") {
		t.Errorf("%v\n%s", err, shown)
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	for _, name := range []string{"/nowhere.yaml", "/proc"} {
		t.Setenv("MCS_CONFIG", name)
		_, _, err := run(t, "", nil, "serve")
		if _, ours := errors.AsType[*Error](err); !ours || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzFile: whatever a file holds, it gives good values or problems, and a value that was taken can be set.
func FuzzFile(f *testing.F) {
	f.Add("serve: {listen: [a], most: 1}\nstate-dir: /x\n")
	f.Add("a: &a [*a]\nserve: *a\n")
	f.Add("? [a]\n: b\n")
	f.Add("serve: &a {listen: [*a]}")
	f.Fuzz(func(t *testing.T, text string) {
		root := commands(&taken{})
		p := &program{root: root}
		for _, c := range root.Commands() {
			if c.Name() != "config" {
				p.bind(c, nil, []string{"state-dir"})
			}
		}
		said, _ := p.parse("c.yaml", []byte(text))
		for key, v := range said {
			for _, flag := range p.find(key).flags {
				if err := kindOf(flag).set(flag, v); err != nil {
					t.Errorf("%s: %v cannot be set: %v", key, v, err)
				}
			}
		}
	})
}
