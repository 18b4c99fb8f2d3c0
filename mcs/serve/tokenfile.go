// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcsnap/mcsnap/mcs/filewatch"
)

// TokenFile is an Authenticator for a file of tokens, one a line, at least 16 characters each. A line may end in
// "until=2030-01-31T12:00:00Z" (RFC 3339). Empty lines and lines that begin with # are passed over.
//
// Several tokens are good at the same time, so that a new one can be handed out while machines with the old one are
// still booting.
type TokenFile struct {
	path   string
	log    *slog.Logger
	now    func() time.Time
	tokens atomic.Pointer[[]token]
	fault  string // the last one that was said
}

// token is kept as its hash: comparing hashes takes the same time wherever two tokens differ.
type token struct {
	sum   [sha256.Size]byte
	until time.Time // zero: no end
}

const (
	shortestToken = 16
	largestTokens = 1 << 20
)

// OpenTokenFile reads the file. Errors name the line and quote nothing of it.
func OpenTokenFile(path string, log *slog.Logger) (*TokenFile, error) {
	f := &TokenFile{path: path, log: log, now: time.Now}
	return f, f.load()
}

// Run reads the file again whenever it changes, until ctx ends. A file that cannot be read keeps the tokens that were
// good before, and says so once.
func (f *TokenFile) Run(ctx context.Context) error {
	return filewatch.Watch(ctx, f.log, []string{filepath.Dir(f.path)}, filewatch.Timing{}, f.reload)
}

func (f *TokenFile) reload() {
	fault := ""
	if err := f.load(); err != nil {
		fault = err.Error()
	}
	if fault != "" && fault != f.fault {
		f.log.Error("the token file is not taken up; the tokens it had before stay good", "problem", fault)
	}
	f.fault = fault
}

func (f *TokenFile) load() error {
	info, err := os.Stat(f.path)
	if err == nil && info.Size() > largestTokens {
		return fmt.Errorf("%s: has %d bytes, the limit is %d; remove old tokens", f.path, info.Size(), largestTokens)
	}
	data, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("token file: %w; make it readable for this user", err)
	}
	tokens, err := parseTokens(data)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.tokens.Store(&tokens)
	return nil
}

func parseTokens(data []byte) ([]token, error) {
	var tokens []token
	lines := bufio.NewScanner(bytes.NewReader(data))
	for number := 1; lines.Scan(); number++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields[0]) < shortestToken {
			return nil, fmt.Errorf("line %d: the token is shorter than %d characters; make one with: openssl rand -hex 32", number, shortestToken)
		}
		t := token{sum: sha256.Sum256([]byte(fields[0]))}
		if len(fields) > 1 {
			text, ok := strings.CutPrefix(fields[1], "until=")
			until, err := time.Parse(time.RFC3339, text)
			if !ok || err != nil || len(fields) > 2 {
				return nil, fmt.Errorf("line %d: only until=<RFC 3339 time> may follow a token; write until=2030-01-31T12:00:00Z", number)
			}
			t.until = until
		}
		tokens = append(tokens, t)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot be read by lines; write one token a line")
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("holds no token; write one a line")
	}
	return tokens, nil
}

// Authenticate compares with every token, whether or not one has matched already.
func (f *TokenFile) Authenticate(_ context.Context, given string) (bool, error) {
	sum := sha256.Sum256([]byte(given))
	now := f.now()
	good := 0
	for _, t := range *f.tokens.Load() {
		valid := 1
		if !t.until.IsZero() && !now.Before(t.until) {
			valid = 0
		}
		good |= subtle.ConstantTimeCompare(sum[:], t.sum[:]) & valid
	}
	return good == 1, nil
}
