// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mcsnap/mcsnap/mcs/serve"
)

// ports are the addresses that a server has taken.
type ports struct {
	secure, plain []net.Listener
	metrics       net.Listener
}

// listen takes every address, or none.
func (cfg Config) listen() (p *ports, err error) {
	p = &ports{}
	take := func(address string, into *[]net.Listener) {
		if err != nil {
			return
		}
		l, fault := net.Listen("tcp", address)
		if fault != nil {
			err = &MachineError{describe(address, fault)}
			return
		}
		*into = append(*into, l)
	}
	for _, address := range cfg.Listen {
		take(address, &p.secure)
	}
	for _, address := range cfg.ListenPlain {
		take(address, &p.plain)
	}
	if cfg.ListenMetrics != "" {
		var metrics []net.Listener
		if take(cfg.ListenMetrics, &metrics); len(metrics) > 0 {
			p.metrics = metrics[0]
		}
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// all returns the listeners in the order of Config: TLS, plain, metrics.
func (p *ports) all() []net.Listener {
	all := slices.Concat(p.secure, p.plain)
	if p.metrics != nil {
		all = append(all, p.metrics)
	}
	return all
}

// close gives the ports back; those that a server has closed already are no matter.
func (p *ports) close() {
	for _, l := range p.all() {
		_ = l.Close()
	}
}

// serving returns the listeners for nodes.
func (p *ports) serving(c certificate) (serving []serve.Listener) {
	for _, l := range p.secure {
		serving = append(serving, serve.Listener{Listener: l, TLS: c.config})
	}
	for _, l := range p.plain {
		serving = append(serving, serve.Listener{Listener: l})
	}
	return serving
}

// announce says where the server listens.
func (cfg Config) announce(p *ports) {
	var addrs []net.Addr
	for _, l := range p.all() {
		addrs = append(addrs, l.Addr())
		cfg.Log.Info("listening", "address", l.Addr().String(), "metrics", l == p.metrics)
	}
	if cfg.Listening != nil {
		cfg.Listening(addrs)
	}
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
