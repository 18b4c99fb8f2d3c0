// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"strings"
	"testing"
	"testing/fstest"
)

func tree(files map[string]string) fstest.MapFS {
	made := fstest.MapFS{}
	for name, text := range files {
		made[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return made
}

func TestRender(t *testing.T) {
	got, err := Render(tree(map[string]string{
		"README.md":                "how",
		"unreleased/b.md":          "# Fixed: b\n",
		"unreleased/a.md":          "# Fixed: a\n\nOne\ntwo.\n\n    $ mcs serve\n",
		"unreleased/z.md":          "# Security: z\n",
		"0.9.0_2026-12-01/one.md":  "# Added: one\n",
		"0.10.0_2027-01-31/two.md": "# Changed: two\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `
## Unreleased

### Security

* **z**

### Fixed

* **a**

  One
  two.

      $ mcs serve
* **b**

## 0.10.0, 2027-01-31

### Changed

* **two**

## 0.9.0, 2026-12-01

### Added

* **one**
`
	if string(got) != head+want {
		t.Errorf("got\n%s", got)
	}
}

// A note that would not come out as it was meant is refused, with its name and the remedy.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"no heading":         {"unreleased/a.md", "Fixed: a\n", "begin with `# Kind:"},
		"no title":           {"unreleased/a.md", "# Fixed:\n", "begin with `# Kind:"},
		"an unknown kind":    {"unreleased/a.md", "# Mended: a\n", "use one of Security, Removed"},
		"two headings":       {"unreleased/a.md", "# Fixed: a\n\n## More\n", "a note of its own"},
		"a long heading":     {"unreleased/a.md", "# Fixed: " + strings.Repeat("a", 121) + "\n", "say it in 120"},
		"a relative link":    {"unreleased/a.md", "# Fixed: a\n\n[x](../../x.md)\n", "leads elsewhere"},
		"another file":       {"unreleased/a.txt", "# Fixed: a\n", "ends in .md"},
		"a note beside them": {"a.md", "# Fixed: a\n", "notes go into unreleased/"},
		"an undated release": {"1.0.0/a.md", "# Fixed: a\n", "VERSION_DATE"},
		"a date that is not": {"1.0.0_2027-02-31/a.md", "# Fixed: a\n", "VERSION_DATE"},
		"a good one":         {"unreleased/a.md", "# Fixed: a\n\n[x](https://example.com/x)\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Render(tree(map[string]string{c.file: c.text}))
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.file[:4])):
				t.Errorf("%v; want it to name the file and say %q", err, c.want)
			}
		})
	}
}
