// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Listener is one address to serve on.
type Listener struct {
	net.Listener
	// TLS is nil for plain HTTP.
	TLS *tls.Config
}

// ErrCut says that the drain timeout passed with bodies still on their way.
var ErrCut = errors.New("bodies were cut short: their readers took longer than the drain timeout")

// Run serves on the listeners until ctx ends, then stops accepting, lets every body that has begun be read to its end
// and returns nil; ErrCut if that took longer than the drain timeout.
func (s *Server) Run(ctx context.Context, listeners ...Listener) error {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.cfg.HeaderTimeout,
		IdleTimeout:       s.cfg.IdleTimeout,
		MaxHeaderBytes:    s.cfg.MaxHeaderBytes,
		// OPTIONS * is a method like any other here.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     connectionLog(s.cfg.Log, s.metrics),
	}
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)

	var open atomic.Int64
	group, running := errgroup.WithContext(ctx)
	for _, l := range listeners {
		var accepting net.Listener = &limited{
			Listener: l.Listener, open: &open, most: int64(s.cfg.MaxConnections),
			refuse: s.metrics.turned.Inc, stall: s.cfg.StallTimeout,
		}
		if l.TLS != nil {
			accepting = tls.NewListener(accepting, l.TLS)
		}
		group.Go(func() error {
			if err := server.Serve(accepting); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("%s: %w", l.Addr(), err)
			}
			return nil
		})
	}
	group.Go(func() error {
		<-running.Done()
		return s.drain(server)
	})
	return group.Wait()
}

func (s *Server) drain(server *http.Server) error {
	s.draining.Store(true)
	s.cfg.Log.Info("ending: no new connections, bodies on their way are finished", "in_flight", s.admission.inFlight.Load())
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.DrainTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		_ = server.Close()
		return ErrCut
	}
	return nil
}
