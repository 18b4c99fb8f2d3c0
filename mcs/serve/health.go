// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net/http"
	"strings"
)

// health answers /healthz (the process lives) and /readyz (every required pool has a verified body). Both say exactly
// 200 or 503, which every load balancer's probe understands.
func (s *Server) health(w http.ResponseWriter, r *http.Request, e *exchange) *refusal {
	text := "ok\n"
	if r.URL.Path == "/readyz" {
		var bad []string
		var list strings.Builder
		for _, check := range s.checks() {
			if check.Problem == "" {
				note(&list, check.Name, check.Note)
				continue
			}
			bad = append(bad, check.Name+": "+check.Problem)
			fmt.Fprintf(&list, "[-] %s: %s\n", check.Name, check.Problem)
		}
		_, verbose := r.URL.Query()["verbose"]
		if verbose && s.cfg.Notes != nil {
			for _, besides := range s.cfg.Notes() {
				note(&list, besides.Name, besides.Problem)
			}
		}
		switch {
		case len(bad) > 0 && verbose:
			return notNow("not-ready", strings.TrimSuffix(list.String(), "\n"))
		case len(bad) > 0:
			return notNow("not-ready", strings.Join(bad, "; "))
		case verbose:
			text = list.String() + "ready\n"
		}
	}
	newRepresentation([]byte(text), plainText[0], field{"Cache-Control", noStore}).sendPlain(w, r, e)
	return nil
}

// note lists what does not keep nodes from being served.
func note(list *strings.Builder, name, problem string) {
	if problem != "" {
		fmt.Fprintf(list, "[!] %s: %s (nodes are served all the same)\n", name, problem)
	} else {
		fmt.Fprintf(list, "[+] %s ok\n", name)
	}
}

// sendPlain sends a short text that no client asks for in parts.
func (r *representation) sendPlain(w http.ResponseWriter, req *http.Request, e *exchange) {
	h := w.Header()
	for _, f := range r.header {
		switch f.key {
		case "Etag", "Repr-Digest", "Accept-Ranges":
		default:
			h[f.key] = f.value
		}
	}
	e.status = http.StatusOK
	w.WriteHeader(e.status)
	if req.Method != http.MethodHead {
		n, _ := w.Write(r.data)
		e.bytes = int64(n)
	}
}
