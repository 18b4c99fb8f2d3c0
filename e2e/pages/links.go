// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"net/url"
	"path"
	"strings"
)

// Links returns the links that lead nowhere: to a file that exists does not know, or to a heading that its page does not
// have. Other servers are not asked.
func Links(all []*Page, exists func(path string) bool) (faults []string) {
	byPath := map[string]*Page{}
	for _, p := range all {
		byPath[p.Path] = p
	}
	for _, p := range all {
		for _, link := range p.links {
			if problem := follow(p, link.text, byPath, exists); problem != "" {
				faults = append(faults, fmt.Sprintf("%s:%d: link to %s: %s", p.Path, link.line, link.text, problem))
			}
		}
	}
	return faults
}

func follow(p *Page, destination string, byPath map[string]*Page, exists func(string) bool) string {
	u, err := url.Parse(destination)
	switch {
	case err != nil:
		return "is no address; mend it"
	case u.Scheme != "":
		if u.Scheme != "https" && u.Scheme != "mailto" {
			return "use https"
		}
		return ""
	case strings.HasPrefix(u.Path, "/"):
		return "begins with /; write it relative to " + p.Path
	}
	target := p.Path
	if u.Path != "" {
		target = path.Join(path.Dir(p.Path), u.Path)
	}
	if !exists(target) {
		return "there is no " + target + "; name a file or folder of the repository"
	}
	if u.Fragment == "" {
		return ""
	}
	page, known := byPath[target]
	switch {
	case !known:
		return target + " is no page, so it has no #" + u.Fragment
	case !page.anchors[u.Fragment]:
		return fmt.Sprintf("no heading of %s makes #%s; the nearest makes #%s", target, u.Fragment, nearest(u.Fragment, page.anchors))
	}
	return ""
}
