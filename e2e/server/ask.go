// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// URL is where clients find the server.
func (s *Server) URL() string { return fmt.Sprintf("https://%s:%d", s.Host, s.Port) }

// Metrics is where its metrics are, in this run.
func (s *Server) Metrics() string { return "http://" + s.metrics + "/metrics" }

// CAFile is the certificate of the authority that clients trust.
func (s *Server) CAFile() string {
	if s.CA != "" {
		return s.CA
	}
	return s.OnDisk("tls/ca.crt")
}

// NewClient makes a client that accepts the server's CA and no other, waits ten seconds for an answer's header as
// Ignition does, follows no redirect and asks for no encoding. Its connections are its own.
func (s *Server) NewClient() (*http.Client, error) {
	pem, err := os.ReadFile(s.CAFile())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate in it", s.CAFile())
	}
	return &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots}, DisableCompression: true, ResponseHeaderTimeout: 10 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       Patience,
	}, nil
}

// Get asks as Ignition asks, on a connection of its own, and returns body and headers of a 200. Any other answer is an
// error.
func (s *Server) Get(ctx context.Context, path string) ([]byte, http.Header, error) {
	client, err := s.NewClient()
	if err != nil {
		return nil, nil, err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+path, nil)
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Accept", "application/vnd.coreos.ignition+json;version=3.5.0, */*;q=0.1")
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", path, response.Status, bytes.TrimSpace(body))
	}
	return body, response.Header, err
}

// Ready waits until every pool the server knows of can be answered.
func (s *Server) Ready(ctx context.Context) error {
	return s.until(ctx, "it was ready", func() error {
		_, _, err := s.Get(ctx, "/readyz")
		return err
	})
}

// Serves waits until the pool's body is that of the rendered config of that name.
func (s *Server) Serves(ctx context.Context, pool, rendered string) error {
	return s.until(ctx, "it served "+rendered, func() error {
		_, header, err := s.Get(ctx, "/config/"+pool)
		if err == nil && header.Get("Mcsnap-Rendered-Config") != rendered {
			err = fmt.Errorf("it serves %s", header.Get("Mcsnap-Rendered-Config"))
		}
		return err
	})
}

// Stub is the user-data of a machine of that pool, as the built ignition-stub renders it.
func (s *Server) Stub(ctx context.Context, pool string, flags ...string) ([]byte, error) {
	bin, err := Bin()
	if err != nil {
		return nil, err
	}
	args := append([]string{"render", "--url", s.URL() + "/config/" + pool, "--ca", s.CAFile()}, flags...)
	render := exec.CommandContext(ctx, filepath.Join(bin, "ignition-stub"), args...)
	var said bytes.Buffer
	render.Stderr = &said
	stub, err := render.Output()
	if err != nil {
		return nil, fmt.Errorf("ignition-stub render: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return stub, nil
}
