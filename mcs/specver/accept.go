// SPDX-License-Identifier: Apache-2.0

package specver

import (
	"fmt"
	"mime"
	"slices"
	"strconv"
	"strings"
)

// MediaType is what Ignition names in its Accept header and what a body is served as.
const MediaType = "application/vnd.coreos.ignition+json"

// NotAcceptableError says that a client names Ignition spec versions and none of them can ever be served (1.x, 4.x). It
// is the one case for a final 406: no waiting makes it better.
type NotAcceptableError struct {
	Asked []string // what the client named, in its order, cleaned of anything but versions
}

func (e *NotAcceptableError) Error() string {
	return fmt.Sprintf("Accept: Ignition spec %s is not served: this server speaks %s; boot an Ignition that reads one of them",
		strings.Join(e.Asked, ", "), list(All))
}

// Negotiate reads an Accept header (RFC 9110, section 12.5.1; several header lines joined by commas) and says which spec
// version to answer with. own is the version the config was rendered in, def the one for clients that name no Ignition
// type or no version, such as curl (zero: own). The answer is never newer than own.
//
// Among several Ignition entries the highest q wins, at equal q the newest. A newer minor than is known is answered with
// the newest known, 2.2 and later 2.x with 2.2. An entry that cannot be read is no entry: a header of nothing but
// garbage is treated like none at all. *NotAcceptableError is returned when Ignition versions are named and none can
// ever be served; a wildcard beside them does not count, because Ignition adds one to every request.
func Negotiate(accept string, own, def Version) (Version, error) {
	if def.IsZero() {
		def = own
	}
	var best entry
	var found bool
	var refused []string
	var banned []Version
	for item := range splitOutsideQuotes(accept, ',') {
		e, ok := parseEntry(item)
		if !ok {
			continue
		}
		v, servable := e.asked.serve()
		switch {
		case e.q == 0:
			banned = append(banned, e.asked.Version)
		case !servable:
			refused = append(refused, e.text)
		case !found || e.q > best.q || (e.q == best.q && best.served.Less(v)):
			e.served = v
			best, found = e, true
		}
	}
	switch {
	case found:
		return Min(best.served, own), nil
	case len(refused) > 0:
		return Version{}, &NotAcceptableError{Asked: refused}
	}
	answer := Min(def, own)
	if slices.Contains(banned, answer) {
		return Version{}, &NotAcceptableError{Asked: []string{answer.String() + " (q=0)"}}
	}
	return answer, nil
}

// entry is one media range that names the Ignition type and a version.
type entry struct {
	asked  asked
	served Version
	q      float64
	text   string
}

// parseEntry reads one element of the header. ok is false for other types, for an Ignition type without a version, and
// for what cannot be read. Only version and q are looked at; extensions, well formed or not, are passed over.
func parseEntry(item string) (entry, bool) {
	var typ string
	kept := make([]string, 0, 3)
	for part := range splitOutsideQuotes(item, ';') {
		name, _, hasValue := strings.Cut(part, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		switch {
		case typ == "":
			typ = strings.TrimSpace(part)
			if typ == "" {
				return entry{}, false
			}
			kept = append(kept, typ)
		case hasValue && (name == "version" || name == "q"):
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 || !strings.EqualFold(typ, MediaType) {
		return entry{}, false
	}
	_, params, err := mime.ParseMediaType(strings.Join(kept, ";"))
	if err != nil {
		return entry{}, false
	}
	a, ok := parseAsked(params["version"])
	if !ok {
		return entry{}, false
	}
	return entry{asked: a, q: quality(params["q"]), text: clip(params["version"])}, true
}

// quality reads a weight. One that is missing or outside 0 to 1 counts as 1, as if it were not there.
func quality(s string) float64 {
	q, err := strconv.ParseFloat(s, 64)
	if err != nil || !(q >= 0 && q <= 1) {
		return 1
	}
	return q
}

// splitOutsideQuotes yields the pieces of s between separators, leaving those inside quoted strings alone.
func splitOutsideQuotes(s string, sep byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start, quoted := 0, false
		for i := 0; i < len(s); i++ {
			switch {
			case quoted && s[i] == '\\':
				i++
			case s[i] == '"':
				quoted = !quoted
			case s[i] == sep && !quoted:
				if !yield(s[start:i]) {
					return
				}
				start = i + 1
			}
		}
		yield(s[start:])
	}
}
