// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mcsnap/mcsnap/mcs/serve"
)

// listen opens every address, or none.
func (cfg Config) listen(c certificate) (serving []serve.Listener, metrics net.Listener, err error) {
	var open []net.Listener
	defer func() {
		if err != nil {
			for _, l := range open {
				_ = l.Close()
			}
		}
	}()
	listen := func(address string) (net.Listener, error) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, &MachineError{describe(address, err)}
		}
		open = append(open, l)
		return l, nil
	}
	for _, address := range cfg.Listen {
		l, err := listen(address)
		if err != nil {
			return nil, nil, err
		}
		serving = append(serving, serve.Listener{Listener: l, TLS: c.config})
	}
	for _, address := range cfg.ListenPlain {
		l, err := listen(address)
		if err != nil {
			return nil, nil, err
		}
		serving = append(serving, serve.Listener{Listener: l})
	}
	if cfg.ListenMetrics != "" {
		if metrics, err = listen(cfg.ListenMetrics); err != nil {
			return nil, nil, err
		}
	}
	var addrs []net.Addr
	for _, l := range open {
		addrs = append(addrs, l.Addr())
		cfg.Log.Info("listening", "address", l.Addr().String(), "metrics", l == metrics)
	}
	if cfg.Listening != nil {
		cfg.Listening(addrs)
	}
	return serving, metrics, nil
}

// describe says what is in the way of an address, and the remedy.
func describe(address string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use; end the other server, or choose another address with --listen or --metrics-listen", address)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s may not be opened by this user; choose a port above 1023", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s is no address of this machine; choose another with --listen or --metrics-listen", address)
	}
	return fmt.Errorf("%s cannot be opened: %w; write host:port", address, err)
}

// serveMetrics answers /metrics, apart from the nodes' listener: figures are for operators.
func serveMetrics(ctx context.Context, on net.Listener, from prometheus.Gatherer) error {
	if on == nil {
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(from, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(on); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}
