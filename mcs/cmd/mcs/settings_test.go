// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcsnap/mcsnap/e2e/server"
	"github.com/mcsnap/mcsnap/mcs/settings"
)

func settingsFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Every flag has a variable and a key, but for those that ask something of the program itself.
func TestEveryFlagHasItsPlaces(t *testing.T) {
	var count int
	var look func(*cobra.Command)
	look = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			count++
			if c.Parent().Name() != "config" && (len(f.Annotations[settings.KeyAnnotation]) != 1 || len(f.Annotations[settings.EnvAnnotation]) != 1) {
				t.Errorf("%s --%s has no key or no variable", c.CommandPath(), f.Name)
			}
		})
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(root())
	if count < 60 {
		t.Errorf("only %d flags were found", count)
	}
}

// A server that is told everything by a file and the environment serves as one that is told by flags.
func TestServeWithoutFlags(t *testing.T) {
	t.Setenv("MCS_BOOTSTRAP_DIR", copyFolder(t))
	s := server.Start(t, "bootstrap", "--config", settingsFile(t, `
bootstrap:
  no-credentials: true
  dev-tls: true
  agent: [none]
  log-format: json
`))
	served(s)
	everyMetricIsInTheReference(t, s.Metrics())
}

// everyMetricIsInTheReference looks at what a running server shows: the reference is made without running one.
func everyMetricIsInTheReference(t *testing.T, url string) {
	t.Helper()
	reference, err := os.ReadFile("../../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`(?m)^# TYPE (mcsnap_\w+) (\w+)$`).FindAllStringSubmatch(string(text), -1)
	for _, m := range shown {
		if !strings.Contains(string(reference), "| `"+m[1]+"` | "+m[2]+" |") {
			t.Errorf("docs/reference.md has no %s %s: run go generate ./e2e/reference", m[2], m[1])
		}
	}
	if len(shown) < 8 {
		t.Errorf("the server shows only %d metrics", len(shown))
	}
}

// What is wrong with a file ends the program before it does anything, with one line and code 3.
func TestSettingsThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"bootstrap: {lisen: [a]}":  "bootstrap.lisen: no such key; the nearest is bootstrap.listen",
		"serve: {token-reviw: 1}":  "the nearest is serve.token-review", // another command's section is judged too
		"bootstrap: {listen: yes}": "write a list",
	} {
		_, stderr, code := server.Execute(t, "bootstrap", "--config", settingsFile(t, text))
		if code != 3 || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, %s", text, code, stderr)
		}
	}
	file := settingsFile(t, "serve:\n  dev-tls: true\n  agent: [none]\n  gate: maybe\n")
	if stdout, _, code := server.Execute(t, "config", "check", "--config", file); code != 3 || !strings.Contains(stdout, `--gate "maybe": use enforce or log`) || !strings.Contains(stdout, "config.yaml:4") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	file = settingsFile(t, "serve:\n  dev-tls: true\n  agent: [none]\n")
	if stdout, stderr, code := server.Execute(t, "config", "check", "--config", file); code != 0 {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if _, _, code := server.Execute(t, "config", "check", "--output", "xml"); code != 2 {
		t.Errorf("exit code %d for wrong usage", code)
	}
}

func TestConfigShow(t *testing.T) {
	program, err := server.Program()
	if err != nil {
		t.Fatal(err)
	}
	show := exec.Command(program, "config", "show", "serve", "-o", "json", "--config", settingsFile(t, "state-dir: /srv/mcs\n"))
	show.Env = append(os.Environ(), "MCS_SERVE_ALLOW_CIDR=10.0.0.0/8,fd00::/8")
	out, err := show.Output()
	var list []struct {
		Key, From string
		Value     any
	}
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := map[string]string{}
	for _, e := range list {
		found[e.Key] = e.From
	}
	if found["serve.allow-cidr"] != "MCS_SERVE_ALLOW_CIDR" || !strings.HasSuffix(found["state-dir"], "config.yaml:1") || found["serve.gate"] != "default" {
		t.Errorf("%v", found)
	}
}
