// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/agnivade/levenshtein"
	"go.yaml.in/yaml/v3"
)

// maxFile is more than any file of settings needs.
const maxFile = 1 << 20

func (p *program) readFile(name string) (map[string]value, []Problem) {
	file, err := os.Open(name)
	if err != nil {
		return map[string]value{}, []Problem{{Where: name, Problem: errors.Unwrap(err).Error() + "; name a file in YAML that can be read, or leave --config out"}}
	}
	defer file.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return map[string]value{}, []Problem{{Where: name, Problem: errors.Unwrap(err).Error() + "; name a file in YAML that can be read"}}
	case len(text) > maxFile:
		return map[string]value{}, []Problem{{Where: name, Problem: "is larger than 1 MiB; name a file with settings"}}
	}
	return p.parse(name, text)
}

// parse reads settings in YAML: sections called after commands, in them keys called after flags.
func (p *program) parse(name string, text []byte) (map[string]value, []Problem) {
	r := reading{program: p, name: name, said: map[string]value{}}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, more yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF): // empty, or nothing but comments
		return r.said, nil
	case err != nil:
		return r.said, []Problem{{Where: name, Problem: strings.TrimPrefix(err.Error(), "yaml: ") + "; mend the YAML"}}
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return r.said, []Problem{{Where: name, Problem: "goes on after its first document; leave one"}}
	}
	r.section("", document.Content[0])
	return r.said, r.problems
}

// reading is a file while it is read.
type reading struct {
	*program
	name     string
	said     map[string]value
	problems []Problem
}

func (r *reading) fault(n *yaml.Node, key, format string, args ...any) {
	r.problems = append(r.problems, Problem{Where: r.at(n), Key: key, Problem: fmt.Sprintf(format, args...)})
}

func (r *reading) at(n *yaml.Node) string { return fmt.Sprintf("%s:%d", r.name, n.Line) }

// section reads what stands below a key, "" for the whole file.
func (r *reading) section(above string, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return // a section whose keys are all commented out
	}
	if n.Kind != yaml.MappingNode {
		r.fault(n, above, "cannot be %s; write a section: keys with values", described(n))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, below := n.Content[i], n.Content[i+1]
		key := strings.TrimPrefix(above+"."+name.Value, ".")
		s := r.find(key)
		switch {
		case strings.Contains(name.Value, "."):
			r.fault(name, shortened(key), "has a dot; write a section with the key in it")
		case seen[key]:
			r.fault(name, key, "stands here a second time; leave one")
		case s != nil:
			r.value(s, name, below)
		case r.isSection(key):
			r.section(key, below)
		default:
			r.fault(name, shortened(key), "no such key; %s", r.instead(key))
		}
		seen[key] = true
	}
}

func (r *reading) value(s *setting, at, n *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	texts, err := kindOf(s.flags[0]).ofNode(n)
	if err != nil {
		r.fault(at, s.key, "%v", err)
		return
	}
	r.said[s.key] = value{texts, r.at(at)}
}

func (r *reading) isSection(key string) bool {
	for _, s := range r.settings {
		if strings.HasPrefix(s.key, key+".") {
			return true
		}
	}
	return false
}

// instead names the keys that may have been meant: those of that name elsewhere, or the one with the fewest letters to
// change.
func (r *reading) instead(key string) string {
	var elsewhere []string
	known := map[string]bool{}
	name := key[strings.LastIndex(key, ".")+1:]
	for _, s := range r.settings {
		if known[s.key] = true; strings.HasSuffix("."+s.key, "."+name) {
			elsewhere = append(elsewhere, s.key)
		}
		for section := s.key; strings.Contains(section, "."); known[section] = true {
			section = section[:strings.LastIndex(section, ".")]
		}
	}
	if len(elsewhere) > 0 && name != "" {
		return "it is said as " + strings.Join(elsewhere, " or ")
	}
	return "the nearest is " + nearest(key, known)
}

// nearest is the known name with the fewest letters to change, the first by the alphabet of several.
func nearest(name string, known map[string]bool) string {
	best, fewest := "", 0
	for candidate := range known {
		d := levenshtein.ComputeDistance(shortened(name), candidate)
		if best == "" || d < fewest || d == fewest && candidate < best {
			best, fewest = candidate, d
		}
	}
	return best
}

func shortened(key string) string {
	if len(key) > 100 {
		return fmt.Sprintf("%.100s…", key)
	}
	return key
}
