// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheAPIDocument holds docs/http-api.md to the code and to the scripts that ask the built program: every route,
// status, code and header of ours is in all of them.
func TestTheAPIDocument(t *testing.T) {
	read := func(pattern string) string {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		var all strings.Builder
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		return all.String()
	}
	document := read("../../docs/http-api.md")
	scripts := read("../cmd/mcs/testdata/http/*.txt")
	code := read("*.go") + read("../publish/*.go")

	for _, route := range []string{configPrefix, snapshotPrefix, agentPrefix, "/healthz", "/readyz"} {
		if !strings.Contains(document, "`"+route) || !strings.Contains(scripts, "GET "+route) {
			t.Errorf("route %s is not in the document or not in a script", route)
		}
	}
	statuses := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^< (\d{3})$`).FindAllStringSubmatch(scripts, -1) {
		statuses[m[1]] = true
	}
	section := between(document, "## Statuses", "Never 429")
	for _, status := range regexp.MustCompile(`\b[2-5]\d\d\b`).FindAllString(section, -1) {
		if !statuses[status] {
			t.Errorf("no script expects the documented status %s", status)
		}
		delete(statuses, status)
	}
	for status := range statuses {
		t.Errorf("status %s is in a script and not in the document", status)
	}

	// The code's refusals: notNow("code", …), &refusal{status, "code", …}, g.refuse(status, "code", …), Code… = "code".
	documented := section + between(document, "| code of a 503", "Beyond")
	found := 0
	for _, m := range regexp.MustCompile(`(?:notNow\(|refusal\{[\w.]+, |refuse\([\w.]+, |Code\w+ += )"([a-z-]+)"`).FindAllStringSubmatch(code, -1) {
		found++
		if !strings.Contains(documented, "`"+m[1]+"`") {
			t.Errorf("code %s is not in the document", m[1])
		}
	}
	if found < 20 {
		t.Errorf("only %d codes found: the code is written in another way than this test reads", found)
	}
	for _, m := range regexp.MustCompile("`([a-z]+(?:-[a-z]+)+)`").FindAllStringSubmatch(between(document, "| code of a 503", "Beyond"), -1) {
		if what, ok := strings.CutSuffix(m[1], "-unknown"); ok && strings.Contains(code, `s.missing(err, "`+what+`"`) {
			continue // put together from what is missing
		}
		if what, ok := strings.CutSuffix(m[1], "-unreadable"); ok && strings.Contains(code, `s.missing(err, "`+what+`"`) {
			continue
		}
		if !strings.Contains(code, `"`+m[1]+`"`) {
			t.Errorf("documented code %s is not in the code", m[1])
		}
	}
	headers := between(document, "## Headers", "## The gate")
	for _, m := range regexp.MustCompile(`(?:h\["|field\{"|\{")([A-Z][A-Za-z-]+)"[\],]`).FindAllStringSubmatch(code, -1) {
		if name := m[1]; !strings.Contains(strings.ToLower(headers), "`"+strings.ToLower(name)+"`") && name != "Cache-Control" && !slices.Contains(conditional, name) {
			t.Errorf("header %s is not in the document", name)
		}
	}
}

func between(text, from, to string) string {
	_, rest, _ := strings.Cut(text, from)
	section, _, _ := strings.Cut(rest, to)
	return section
}
