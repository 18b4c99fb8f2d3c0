// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// logged writes the one line that a request leaves. Its fields are stable: tools may read them. There is no URL in
// it: a query may hold what a client should not have put there.
func (s *Server) logged(ctx context.Context, e *exchange) {
	if !s.cfg.AccessLog || !s.cfg.Log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	s.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "request",
		slog.String("route", e.route),
		slog.String("method", printable(e.request.Method)),
		slog.String("pool", e.pool),
		slog.String("rendered", e.rendered),
		slog.String("digest", e.digest),
		slog.String("version", e.version),
		slog.String("address", e.request.RemoteAddr),
		slog.String("client", printable(e.request.Header.Get(clientHeader))),
		slog.String("user_agent", printable(e.request.Header.Get("User-Agent"))),
		slog.Int64("bytes", e.bytes),
		slog.Duration("duration", time.Since(e.begun)),
		slog.Int("status", e.status),
		slog.String("reason", e.reason),
	)
}

// clientHeader is what a stub may send to tell machines behind one address apart.
const clientHeader = "Mcsnap-Client"

// longestPrinted bounds what a client can put into the log, in bytes.
const longestPrinted = 120

// printable makes text of a client safe to print: ASCII without control characters, cut short.
func printable(text string) string {
	cut := text
	if len(cut) > longestPrinted {
		cut = cut[:longestPrinted]
	}
	for i := range len(cut) {
		if cut[i] < ' ' || cut[i] > '~' {
			return strings.Map(func(r rune) rune {
				if r < ' ' || r > '~' {
					return '?'
				}
				return r
			}, cut)
		}
	}
	return cut
}
