// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// variable is the name in the environment of what stands at a place in the file: MCS_SERVE_LISTEN for serve.listen.
func (p *program) variable(where []string) string {
	return p.prefix() + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(strings.Join(where, ".")))
}

func (p *program) prefix() string { return strings.ToUpper(p.root.Name()) + "_" }

// serviceLink are the variables that Kubernetes gives a pod for each Service beside it; one may well be called mcs.
var serviceLink = regexp.MustCompile(`_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$`)

// readEnvironment reads the variables, each NAME=VALUE, that are ours.
func (p *program) readEnvironment(variables []string) (said map[string]value, problems []Problem) {
	said = map[string]value{}
	byName, known := map[string]*setting{}, map[string]bool{}
	for _, s := range p.settings {
		byName[s.env], known[s.env] = s, true
	}
	for _, variable := range variables {
		name, text, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, p.prefix()) || serviceLink.MatchString(name) || name == p.variable([]string{configFlag}) {
			continue
		}
		s := byName[name]
		if s == nil {
			problems = append(problems, Problem{Where: "environment", Key: name, Problem: "no setting has this variable; the nearest is " + nearest(name, known)})
			continue
		}
		texts, err := kindOf(s.flags[0]).ofText(text)
		if err != nil {
			problems = append(problems, Problem{Where: "environment", Key: name, Problem: err.Error()})
			continue
		}
		said[s.key] = value{texts, name}
	}
	return said, problems
}

var credentials = regexp.MustCompile(`://[^/@\s]*@`)

// masked is a text without the user and password that a URL in it may hold. No setting is a secret itself: files with
// secrets are named.
func masked(text string) string { return credentials.ReplaceAllString(text, "://(hidden)@") }

var flagName = regexp.MustCompile(`--([a-z][a-z0-9-]*)`)

// explain adds to an error that names flags where those were said, if not on the command line.
func explain(c *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	var places []string
	for _, m := range flagName.FindAllStringSubmatch(err.Error(), -1) {
		f := c.Flag(m[1])
		if f == nil || len(f.Annotations[originAnnotation]) == 0 {
			continue
		}
		place := fmt.Sprintf("%s is said in %s", m[0], f.Annotations[originAnnotation][0])
		if !strings.Contains(strings.Join(places, ", "), place) {
			places = append(places, place)
		}
	}
	if len(places) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(places, ", "))
}
