// SPDX-License-Identifier: Apache-2.0

package stub

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

func (s *Stub) addToken(o Options, d *document) error {
	if o.Token == "" {
		if o.AuthHeader != "" {
			return wrong("auth header", "without a token it means nothing; give the token")
		}
		return nil
	}
	if err := needs(o, "token", V3_1); err != nil {
		return err
	}
	token := strings.TrimSpace(o.Token)
	if !oneWord(token) || strings.ContainsFunc(token, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return wrong("token", "want one word of printable ASCII, as a header can carry")
	}
	if expires, ok := Expiry(token); ok {
		switch left := expires.Sub(o.Now); {
		case left <= 0:
			return wrong("token", "expired at %s; make a new one", expires.UTC().Format(time.RFC3339))
		case left < o.BootBudget:
			s.warn("the token expires in %v, before a machine has had its %v to boot: make one that lives longer",
				left.Round(time.Second), o.BootBudget)
		}
	}
	name, value := "Authorization", "Bearer "+token
	if o.AuthHeader != "" && !strings.EqualFold(o.AuthHeader, name) {
		if !isHeaderName(o.AuthHeader) {
			return wrong("auth header", "%.40q is no name of a header", o.AuthHeader)
		}
		name, value = o.AuthHeader, token
	}
	d.target().HTTPHeaders = []header{{name, value}}
	d.Storage = &storage{Files: []file{{
		Path: TokenPath, Mode: 0o600, Overwrite: true, Contents: reference{Source: dataURL([]byte(token + "\n"))},
	}}}
	return nil
}

// Expiry reads when a token ends, if it is a JWT that says so. Nothing is verified.
func Expiry(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return time.Time{}, false
	}
	var claims struct {
		Expires *float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Expires == nil || *claims.Expires < 0 || *claims.Expires > 1e11 {
		return time.Time{}, false
	}
	return time.Unix(int64(*claims.Expires), 0), true
}

func isHeaderName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && r != '-' && r != '_'
	})
}
