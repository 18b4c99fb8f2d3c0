// SPDX-License-Identifier: Apache-2.0

package fetchtest

import (
	"bytes"
	"crypto/sha512"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// ForEver is for Start: the server never becomes good.
const ForEver = 1 << 30

// Token is what the client shows to the server, and to nobody else.
const Token = "S3CR3T"

// Server is one row of the table, at work.
type Server struct {
	URL    string // of the document
	CA     []byte // in PEM, what the client is told to trust
	Digest string // sha512, of the document
	Body   []byte // the document

	row    Row
	bad    int64        // how many times the row happens before the server becomes good
	happen atomic.Int64 // how many times it happened
	asked  atomic.Int64 // requests that were understood as such
	leaked atomic.Bool  // the token came to another host
	other  string       // the URL of another host that has the document too
	plain  string       // the same without TLS
	good   tls.Certificate
	wrong  tls.Certificate
}

// Requests is how many HTTP requests came.
func (s *Server) Requests() int { return int(s.asked.Load()) }

// Happened is how many times the row happened, or would have.
func (s *Server) Happened() int { return int(s.happen.Load()) }

// Leaked tells whether the token came to another host than the one asked.
func (s *Server) Leaked() bool { return s.leaked.Load() }

// Start runs a row: so many times it happens, then the server gives the document.
func Start(t testing.TB, row Row, times int, document []byte) *Server {
	t.Helper()
	s := &Server{row: row, bad: int64(times), Body: document, Digest: fmt.Sprintf("sha512-%x", sha512.Sum512(document))}
	ca := NewCA(t, "the CA")
	s.CA, s.good = ca.PEM, ca.Issue(t)
	s.wrong = s.good
	if row.certificate != nil {
		s.wrong = row.certificate(t, ca)
	}
	listener := listen(t)
	s.URL = "https://" + listener.Addr().String() + "/config/worker"
	if row.redirect {
		s.startOther(t)
	}
	server := &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}
	t.Cleanup(func() { server.Close() })
	if row.refuse {
		address := listener.Addr().String()
		listener.Close()
		if times == ForEver {
			return s
		}
		time.AfterFunc(300*time.Millisecond, func() {
			if again, err := net.Listen("tcp", address); err == nil {
				s.run(server, again)
			}
		})
		return s
	}
	s.run(server, listener)
	return s
}

func (s *Server) run(server *http.Server, listener net.Listener) {
	configuration := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate}
	go server.Serve(tls.NewListener(&rude{Listener: listener, server: s}, configuration)) //nolint:errcheck // ends with the test
}

// now tells whether the row is to happen this time.
func (s *Server) now() bool { return s.happen.Add(1) <= s.bad }

func (s *Server) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s.row.certificate != nil && s.now() {
		return &s.wrong, nil
	}
	return &s.good, nil
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	if s.row.answer != nil && s.now() {
		s.row.answer(s, w, r)
		return
	}
	s.give(w, r)
}

// give gives the document as a good server does.
func (s *Server) give(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", fmt.Sprintf("%q", s.Digest[:30]))
	w.Header().Set("Content-Type", "application/json")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.Body))
}

// startOther runs another host with the document, which is to be told nothing.
func (s *Server) startOther(t testing.TB) {
	listener, plain := listen(t), listen(t)
	s.other, s.plain = "https://"+listener.Addr().String()+"/elsewhere", "http://"+plain.Addr().String()+"/elsewhere"
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, values := range r.Header {
			for _, value := range values {
				if bytes.Contains([]byte(value), []byte(Token)) {
					s.leaked.Store(true)
				}
			}
		}
		s.give(w, r)
	})}
	t.Cleanup(func() { server.Close() })
	go server.Serve(plain)                                                                           //nolint:errcheck // ends with the test
	go server.Serve(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{s.good}})) //nolint:errcheck // the same
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

// rude is a listener whose connections suffer what the row does below TLS.
type rude struct {
	net.Listener
	server *Server
}

func (l *rude) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.server.row.connection == nil || !l.server.now() {
			return conn, err
		}
		go l.server.row.connection(conn)
	}
}
