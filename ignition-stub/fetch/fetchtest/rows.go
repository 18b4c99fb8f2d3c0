// SPDX-License-Identifier: Apache-2.0

package fetchtest

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Row is one way for a server to misbehave. Exactly one of its parts is set, by the layer it happens at.
type Row struct {
	Name string

	refuse      bool
	connection  func(net.Conn)
	certificate func(testing.TB, *CA) tls.Certificate
	answer      func(*Server, http.ResponseWriter, *http.Request)
	redirect    bool // needs another host
}

// Rows are all of them.
var Rows = append([]Row{
	{Name: "refuses the connection", refuse: true},
	{Name: "accepts, then resets", connection: func(c net.Conn) { c.(*net.TCPConn).SetLinger(0); c.Close() }},
	{Name: "accepts, then closes", connection: func(c net.Conn) { c.Close() }},
	{Name: "accepts, then says nothing", connection: func(c net.Conn) { hold(c) }},
	{Name: "speaks plain HTTP", connection: func(c net.Conn) {
		io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		hold(c)
	}},
	{Name: "certificate expired", certificate: issue(Expired)},
	{Name: "certificate not yet valid", certificate: issue(Future)},
	{Name: "certificate for another name", certificate: issue(Other)},
	{Name: "certificate of an unknown CA", certificate: func(t testing.TB, _ *CA) tls.Certificate {
		return NewCA(t, "a stranger").Issue(t)
	}},
	{Name: "hangs before the headers", answer: func(_ *Server, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	{Name: "endless headers", answer: raw(func(s *Server, w io.Writer) {
		io.WriteString(w, "HTTP/1.1 200 OK\r\n")
		for i := 0; ; i++ {
			if _, err := fmt.Fprintf(w, "X-%d: %s\r\n", i, strings.Repeat("x", 1000)); err != nil {
				return
			}
		}
	})},
	{Name: "something that is not HTTP", answer: raw(func(_ *Server, w io.Writer) { io.WriteString(w, "220 mail.example.com ESMTP\r\n") })},
	{Name: "hangs in the body", answer: raw(func(s *Server, w io.Writer) {
		s.head(w, len(s.Body))
		w.Write(s.Body[:len(s.Body)/2])
		time.Sleep(time.Minute)
	})},
	{Name: "drips a byte a second", answer: raw(func(s *Server, w io.Writer) {
		s.head(w, len(s.Body))
		for i := range s.Body {
			if _, err := w.Write(s.Body[i : i+1]); err != nil {
				return
			}
			time.Sleep(time.Second)
		}
	})},
	{Name: "promises more than it sends", answer: raw(func(s *Server, w io.Writer) {
		s.head(w, 2*len(s.Body))
		w.Write(s.Body)
	})},
	{Name: "sends more than it promised", answer: raw(func(s *Server, w io.Writer) {
		s.head(w, len(s.Body)/2)
		w.Write(s.Body)
	})},
	{Name: "promises 2 GiB", answer: raw(func(s *Server, w io.Writer) { s.head(w, 2<<30); pour(w) })},
	{Name: "a body without end", answer: raw(func(s *Server, w io.Writer) {
		io.WriteString(w, "HTTP/1.1 200 OK\r\n\r\n")
		pour(w)
	})},
	{Name: "other bytes of the same length", answer: whole(func(s *Server) []byte { return bytes.ToUpper(s.Body) })},
	{Name: "an error page with 200", answer: whole(func(*Server) []byte { return []byte("<html>please log in</html>\n") })},
	{Name: "200 and nothing", answer: whole(func(*Server) []byte { return nil })},
	{Name: "compresses unasked", answer: func(s *Server, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		packed.Write(s.Body)
		packed.Close()
	}},
	{Name: "redirects in a loop", answer: func(_ *Server, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/config/worker?again=1", http.StatusFound)
	}},
	{Name: "redirects to another host", redirect: true, answer: func(s *Server, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, s.other, http.StatusFound)
	}},
	{Name: "redirects out of TLS", redirect: true, answer: func(s *Server, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, s.plain, http.StatusFound)
	}},
}, append(cuts(), statuses()...)...)

// Find returns the row of a name.
func Find(t testing.TB, name string) Row {
	t.Helper()
	for _, row := range Rows {
		if row.Name == name {
			return row
		}
	}
	t.Fatalf("there is no row %q", name)
	return Row{}
}

// Good misbehaves in no way.
var Good = Row{Name: "good"}

// cuts end the connection at every eighth of the body.
func cuts() (rows []Row) {
	for eighth := range 8 {
		rows = append(rows, Row{Name: fmt.Sprintf("cuts the body at %d/8", eighth), answer: raw(func(s *Server, w io.Writer) {
			s.head(w, len(s.Body))
			w.Write(s.Body[:len(s.Body)*eighth/8])
		})})
	}
	return rows
}

func statuses() (rows []Row) {
	for _, status := range []int{201, 202, 204, 206, 304, 400, 401, 403, 404, 408, 429, 500, 502, 503} {
		rows = append(rows, Row{Name: fmt.Sprint(status), answer: answerWith(status, "")})
	}
	for _, after := range []string{"1", "864000", "soon"} {
		for _, status := range []int{429, 503} {
			rows = append(rows, Row{Name: fmt.Sprintf("%d, Retry-After: %s", status, after), answer: answerWith(status, after)})
		}
	}
	return rows
}

func answerWith(status int, after string) func(*Server, http.ResponseWriter, *http.Request) {
	return func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
	}
}

func issue(change func(*x509.Certificate)) func(testing.TB, *CA) tls.Certificate {
	return func(t testing.TB, ca *CA) tls.Certificate { return ca.Issue(t, change) }
}

// whole answers with a body of its own, complete.
func whole(body func(*Server) []byte) func(*Server, http.ResponseWriter, *http.Request) {
	return func(s *Server, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(body(s))
	}
}

// raw writes to the connection itself and then closes it.
func raw(write func(*Server, io.Writer)) func(*Server, http.ResponseWriter, *http.Request) {
	return func(s *Server, w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		write(s, conn)
	}
}

func (s *Server) head(w io.Writer, length int) {
	fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: %q\r\nContent-Length: %d\r\n\r\n", s.Digest[:30], length)
}

// pour writes spaces until nobody listens, 2 MB a second: enough for a limit, little enough for a client without one.
func pour(w io.Writer) {
	chunk := bytes.Repeat([]byte(" "), 20_000)
	for {
		if _, err := w.Write(chunk); err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// hold keeps a connection open until the other side gives up, a minute at most.
func hold(c net.Conn) {
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(time.Minute))
	io.Copy(io.Discard, c)
}
