// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/store"
)

const (
	snapshotPrefix = "/snapshot/"
	agentPrefix    = "/agent/"
)

// errBusy says that too many bodies are being read from disk already.
var errBusy = errors.New("too many reads at once")

var (
	// Content under a digest never changes. Snapshots are secret, so no shared cache may keep one.
	keepPrivate = field{"Cache-Control", []string{"private, max-age=31536000, immutable"}}
	keepPublic  = field{"Cache-Control", []string{"public, max-age=31536000, immutable"}}
)

// Snapshots is what the server needs of a snapshot store.
type Snapshots interface {
	// Get returns a verified snapshot; store.ErrNotFound when there is none.
	Get(ctx context.Context, d snapshot.Digest) (*snapshot.Snapshot, error)
}

// Agents is where agent binaries are read by their hash. Both forms are whole and verified.
type Agents interface {
	// Read returns the binary with that SHA-512 (128 hexadecimal digits) and its gzip form; store.ErrNotFound when
	// there is none.
	Read(ctx context.Context, sha512 string) (raw, gz []byte, err error)
}

// snapshot sends the sealed document of a digest. The digest is as hard to guess as a key, and it is behind the same
// gate as the configs.
func (s *Server) snapshot(w http.ResponseWriter, r *http.Request, e *exchange, name string) *refusal {
	digest, err := snapshot.ParsePathDigest(name)
	if err != nil {
		return &refusal{http.StatusBadRequest, "bad-digest", "no snapshot can have this name: want /snapshot/sha256-<64 hexadecimal digits>"}
	}
	rep, err := s.snapshots.get(r.Context(), string(digest), func(ctx context.Context) (*representation, error) {
		found, err := s.cfg.Snapshots.Get(ctx, digest)
		if err != nil {
			return nil, err
		}
		return newRepresentation(found.Bytes(), jsonType, keepPrivate,
			field{"Mcsnap-Snapshot-Digest", []string{string(digest)}},
			field{"Mcsnap-Rendered-Config", []string{found.Name()}}), nil
	})
	if err != nil {
		return s.missing(err, "snapshot", digest.PathForm())
	}
	e.digest = string(digest)
	e.status, e.bytes = rep.send(w, r)
	return nil
}

var sha512Name = regexp.MustCompile(`^sha512-[0-9a-f]{128}$`)

// agentForms are the two representations of one binary.
type agentForms struct{ raw, gzip *representation }

// agent sends an agent binary, as it is or in gzip.
func (s *Server) agent(w http.ResponseWriter, r *http.Request, e *exchange, name string) *refusal {
	name, gz := strings.CutSuffix(name, ".gz")
	if !sha512Name.MatchString(name) {
		return &refusal{http.StatusBadRequest, "bad-hash", "no agent can have this name: want /agent/sha512-<128 hexadecimal digits>, .gz after it for gzip"}
	}
	if s.cfg.Agents == nil {
		return notNow("agent-unknown", "this server hands out no agents; start it with --agent")
	}
	forms, err := s.agents.get(r.Context(), name, func(ctx context.Context) (agentForms, error) {
		raw, zipped, err := s.cfg.Agents.Read(ctx, strings.TrimPrefix(name, "sha512-"))
		if err != nil {
			return agentForms{}, err
		}
		return agentForms{
			raw:  newRepresentation(raw, "application/octet-stream", keepPublic),
			gzip: newRepresentation(zipped, gzipType, keepPublic),
		}, nil
	})
	if err != nil {
		return s.missing(err, "agent", name[:len("sha512-")+12]+"…")
	}
	rep := forms.raw
	if gz {
		rep = forms.gzip
	}
	e.status, e.bytes = rep.send(w, r)
	return nil
}

// missing is what to say about content that is not there. Another server, or this one later, may have it.
func (s *Server) missing(err error, what, name string) *refusal {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return notNow(what+"-unknown", fmt.Sprintf("%s %s is not here; another server may have it", what, name))
	case errors.Is(err, errBusy):
		return notNow("overload", "too many reads at once; ask again")
	}
	s.metrics.faults.Inc()
	s.cfg.Log.Error("stored content cannot be served", "what", what, "name", name, "error", err)
	return notNow(what+"-unreadable", fmt.Sprintf("%s %s cannot be read; see the server's log", what, name))
}
