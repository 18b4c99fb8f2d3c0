// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// value is what one place says. A list has its elements, anything else has one.
type value struct {
	texts []string
	from  string // the variable, or the file and line
}

// kind is how values of one type are written.
type kind struct {
	list   bool
	tags   []string // YAML's, of what stands for such a value
	remedy string
	parse  func(string) error
}

var anyText = func(string) error { return nil }

// kinds are the types of flags that there are. Text may look like a number: 1.2 is a version.
var kinds = map[string]*kind{
	"bool": {tags: []string{"!!bool"}, remedy: "write true or false", parse: func(s string) error {
		_, err := strconv.ParseBool(s)
		return err
	}},
	"int": {tags: []string{"!!int"}, remedy: "write a whole number", parse: func(s string) error {
		_, err := strconv.ParseInt(s, 0, strconv.IntSize)
		return err
	}},
	"duration": {tags: []string{"!!str"}, remedy: "write a time with its unit, such as 30s, 5m or 72h", parse: func(s string) error {
		_, err := time.ParseDuration(s)
		return err
	}},
	"string":      {tags: texts, remedy: `write text, in quotes where YAML takes it for something else: "true"`, parse: anyText},
	"stringArray": {list: true, tags: texts, remedy: `write a list of text, such as ["a", "b"]`, parse: anyText},
	"stringSlice": {list: true, tags: texts, remedy: `write a list of text, such as ["a", "b"]`, parse: anyText},
}

var texts = []string{"!!str", "!!int", "!!float", "!!timestamp"}

func kindOf(f *pflag.Flag) *kind { return kinds[f.Value.Type()] }

// set gives a flag what was said. It was judged before.
func (k *kind) set(f *pflag.Flag, v value) error {
	if k.list {
		return f.Value.(pflag.SliceValue).Replace(slices.Clone(v.texts))
	}
	return f.Value.Set(v.texts[0])
}

// shown is the flag's value without what is hidden in it.
func (k *kind) shown(f *pflag.Flag) any {
	if k.list {
		list := []string{}
		for _, text := range f.Value.(pflag.SliceValue).GetSlice() {
			list = append(list, masked(text))
		}
		return list
	}
	text := f.Value.String()
	if on, err := strconv.ParseBool(text); err == nil && f.Value.Type() == "bool" {
		return on
	}
	if n, err := strconv.Atoi(text); err == nil && f.Value.Type() == "int" {
		return n
	}
	return masked(text)
}

// ofText reads a value from a variable of the environment, where a list is separated by commas.
func (k *kind) ofText(text string) (texts []string, err error) {
	if k.list {
		if text == "" {
			return nil, nil
		}
		reader := csv.NewReader(strings.NewReader(text))
		if texts, err = reader.Read(); err != nil || reader.InputOffset() < int64(len(text)) {
			return nil, errors.New("is no list; separate its elements with commas, and put one with a comma in quotes")
		}
		return texts, nil
	}
	if k.parse(text) != nil {
		return nil, fmt.Errorf("cannot be %s; %s", quoted(text), k.remedy)
	}
	return []string{text}, nil
}

// ofNode reads a value from a file.
func (k *kind) ofNode(n *yaml.Node) (texts []string, err error) {
	elements := []*yaml.Node{n}
	if k.list {
		if n.Kind != yaml.SequenceNode {
			return nil, fmt.Errorf("cannot be %s; %s", described(n), k.remedy)
		}
		elements = n.Content
	}
	for _, element := range elements {
		if element.Kind == yaml.AliasNode {
			element = element.Alias
		}
		if element.Kind != yaml.ScalarNode || !slices.Contains(k.tags, element.ShortTag()) || k.parse(element.Value) != nil {
			return nil, fmt.Errorf("cannot be %s; %s", described(element), k.remedy)
		}
		texts = append(texts, element.Value)
	}
	return texts, nil
}

// described tells what stands in the place of a value.
func described(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a section with keys of its own"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.ShortTag() == "!!null":
		return "empty"
	}
	return quoted(n.Value)
}

// quoted is a short piece of what was written.
func quoted(text string) string {
	if text == "" {
		return "empty"
	}
	return fmt.Sprintf("%.40q", masked(text))
}
