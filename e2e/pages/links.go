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

// Index returns the pages in an index's folder that the index does not link to.
func Index(all []*Page, index string) (faults []string) {
	linked := map[string]bool{index: true}
	for _, p := range all {
		if p.Path == index {
			for _, link := range p.links {
				file, _, _ := strings.Cut(link.text, "#")
				linked[path.Join(path.Dir(index), file)] = true
			}
		}
	}
	for _, p := range all {
		if path.Dir(p.Path) == path.Dir(index) && !linked[p.Path] {
			faults = append(faults, fmt.Sprintf("%s: %s does not name it, so nobody finds it; add it there", p.Path, index))
		}
	}
	return faults
}
