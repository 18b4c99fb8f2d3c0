// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/e2e/server"
	"github.com/mcsnap/mcsnap/snapshot"
)

// The HTTP contract as plain text. Each file in testdata/http is one run of the server:
//
//	server: FLAGS              the flags it is started with, besides those of every run
//	GET /path                  a request,
//	> Header: value            its headers,
//	< 503                      the status it gets,
//	< Header: value            a header with exactly this value,
//	< Header ~ regexp          or one that matches,
//	< !Header                  or none of that name,
//	body == text               and the body (\n is a line's end),
//	body ~ regexp              or one that matches,
//	body !~ regexp             or does not.
//
// $DIGEST, $ARCH, $AGENT and $AGENTFILE stand for the worker's snapshot, this machine, the agent's hash and its file.
func TestHTTP(t *testing.T) {
	files, err := filepath.Glob("testdata/http/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			runScript(t, file)
		})
	}
}

// step is one request and what is expected of its answer.
type step struct {
	line         int
	method, path string
	header       http.Header
	expect       []string
}

func runScript(t *testing.T, file string) {
	flags, steps := readScript(t, file, variables(t))
	s := server.Start(t, append([]string{"bootstrap", "--dev-tls", "--external-url", "https://mcs.example.com:22623"}, flags...)...)
	served(s)
	client := s.Client()
	for _, step := range steps {
		request, err := http.NewRequest(step.method, s.URL()+step.path, nil) // net/http cleans nothing of it
		if err != nil {
			t.Fatal(err)
		}
		request.Header = step.header
		reply, err := client.Do(request)
		if err != nil {
			t.Errorf("%s:%d: %v", file, step.line, err)
			continue
		}
		body, err := io.ReadAll(reply.Body)
		_ = reply.Body.Close()
		if err != nil {
			t.Errorf("%s:%d: the body was cut short: %v", file, step.line, err)
		}
		for _, expected := range step.expect {
			if problem := check(expected, reply, string(body)); problem != "" {
				t.Errorf("%s:%d: %s %s: %s: %s", file, step.line, step.method, step.path, expected, problem)
			}
		}
	}
	s.Down()
}

// variables are what scripts cannot know.
func variables(t *testing.T) *strings.Replacer {
	t.Helper()
	rendered, err := os.ReadFile("testdata/folder/machine-configs/rendered-worker-0123456789abcdef0123456789abcdef.yaml")
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := snapshot.Seal(rendered, "worker")
	if err != nil {
		t.Fatal(err)
	}
	path := smallAgent(t)
	agent, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(agent)
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("0123456789abcdef-good\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("$DIGEST", sealed.Digest().PathForm(), "$ARCH", runtime.GOARCH,
		"$AGENTFILE", path, "$AGENT", hex.EncodeToString(sum[:]), "$TOKENS", tokens)
}

func readScript(t *testing.T, file string, variables *strings.Replacer) (flags []string, steps []step) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(variables.Replace(string(text)), "\n") {
		first, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case first == "server:":
			flags = strings.Fields(rest)
		case first == ">":
			name, value, _ := strings.Cut(rest, ": ")
			steps[len(steps)-1].header.Add(name, value)
		case first == "<" || first == "body":
			steps[len(steps)-1].expect = append(steps[len(steps)-1].expect, line)
		case strings.ToUpper(first) == first && rest != "":
			steps = append(steps, step{line: i + 1, method: first, path: rest, header: http.Header{"User-Agent": {"script"}}})
		default:
			t.Fatalf("%s:%d: %q is no line of a script", file, i+1, line)
		}
	}
	return flags, steps
}

// check returns how an answer differs from one expectation, "" when it does not.
func check(expected string, reply *http.Response, body string) string {
	expected = strings.ReplaceAll(expected, `\n`, "\n")
	subject, rest, _ := strings.Cut(expected, " ")
	if subject == "body" {
		operator, want, _ := strings.Cut(rest, " ")
		switch operator {
		case "==":
			if body != want {
				return fmt.Sprintf("got %.300q", body)
			}
		case "~", "!~":
			if matches := regexp.MustCompile("(?s)" + want).MatchString(body); matches != (operator == "~") {
				return fmt.Sprintf("got %.300q", body)
			}
		default:
			return "no such check"
		}
		return ""
	}
	if status := fmt.Sprint(reply.StatusCode); len(rest) == 3 && strings.Trim(rest, "0123456789") == "" {
		if status != rest {
			return fmt.Sprintf("got %s %.300q", status, body)
		}
		return ""
	}
	if name, none := strings.CutPrefix(rest, "!"); none {
		if got := reply.Header.Values(name); len(got) > 0 {
			return fmt.Sprintf("got %q", got)
		}
		return ""
	}
	if name, want, ok := strings.Cut(rest, " ~ "); ok {
		if got := header(reply, name); !regexp.MustCompile(want).MatchString(got) {
			return fmt.Sprintf("got %q", got)
		}
		return ""
	}
	name, want, _ := strings.Cut(rest, ": ")
	if got := header(reply, name); got != want {
		return fmt.Sprintf("got %q", got)
	}
	return ""
}

// header returns a header, "" when there is none. Those that net/http takes out of the header are put back.
func header(reply *http.Response, name string) string {
	switch http.CanonicalHeaderKey(name) {
	case "Content-Length":
		return fmt.Sprint(reply.ContentLength)
	case "Connection":
		if reply.Close {
			return "close"
		}
	}
	return strings.Join(reply.Header.Values(name), ", ")
}
