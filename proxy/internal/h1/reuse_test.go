package h1

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestReuse has a target answer in many ways, and looks whether the next request goes on the same connection.
// Whatever it was, the next answer is the next request's.
func TestReuse(t *testing.T) {
	for _, tt := range []struct {
		name   string
		method string   // "" is GET
		in     []string // each by a write of its own
		body   string
		again  bool
	}{
		{"length", "", []string{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"}, "hello", true},
		{"length, in pieces", "", []string{"HTTP/1.1 20", "0 OK\r\nContent-Le", "ngth: 5\r", "\n\r", "\nhe", "llo"}, "hello", true},
		{"no body", "", []string{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}, "", true},
		{"chunks", "", []string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n"}, "hello", true},
		{"chunks and trailers", "", []string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n5\r\nhello\r\n", "0\r\nX-T: v\r\n\r\n"}, "hello", true},
		{"204", "", []string{"HTTP/1.1 204 No Content\r\n\r\n"}, "", true},
		{"304 with a length", "", []string{"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"}, "", true},
		{"HEAD", "HEAD", []string{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"}, "", true},
		{"HEAD of chunks", "HEAD", []string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"}, "", true},
		{"interim answers", "", []string{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", ok}, "ok", true},
		{"a long header", "", []string{"HTTP/1.1 200 OK\r\nX-L: " + strings.Repeat("l", 20<<10) + "\r\nContent-Length: 2\r\n\r\nok"}, "ok", true},

		{"Connection: close", "", []string{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"}, "ok", false},
		{"HTTP/1.0", "", []string{"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"}, "ok", false},
		{"HTTP/1.0 that would be kept", "", []string{"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok"}, "ok", false},
		{"headers longer than what is read at once", "", []string{"HTTP/1.1 200 OK\r\nX-L: " + strings.Repeat("l", 40<<10) + "\r\nContent-Length: 2\r\n\r\nok"}, "ok", false},

		{"another answer behind it", "", []string{ok + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"}, "ok", false},
		{"another answer behind it, apart", "", []string{ok, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"}, "ok", false},
		{"a byte behind it", "", []string{ok + "x"}, "ok", false},
		{"a line break behind it", "", []string{ok + "\r\n"}, "ok", false},
		{"behind the last chunk", "", []string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"}, "ok", false},
		{"a body for HEAD", "HEAD", []string{"HTTP/1.1 200 OK\r\nContent-Length: 38\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}, "", false},
		{"a body for 204", "", []string{"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\n", "evil"}, "", false},
		{"a body for 304", "", []string{"HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nevil"}, "", false},

		{"both lengths", "", []string{"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"}, "ok", false},
		{"both lengths, in other cases", "", []string{"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nCONTENT-LENGTH: 99\r\n\r\n2\r\nok\r\n0\r\n\r\n"}, "ok", false},
		{"the same length twice", "", []string{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok"}, "ok", false},
		{"bare line feeds", "", []string{"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"}, "ok", false},
		{"one bare line feed", "", []string{"HTTP/1.1 200 OK\r\nX-A: b\nContent-Length: 2\r\n\r\nok"}, "ok", false},
		{"a bare carriage return", "", []string{"HTTP/1.1 200 OK\rContent-Length: 9\r\nContent-Length: 2\r\n\r\nok"}, "ok", false},
		{"a folded line", "", []string{"HTTP/1.1 200 OK\r\nX-A: b\r\n Content-Length: 9\r\nContent-Length: 2\r\n\r\nok"}, "ok", false},
		{"an interim answer with both lengths", "", []string{"HTTP/1.1 103 Early Hints\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n", ok}, "ok", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, secure bool) {
				said := make(chan struct{}, 8)
				s := newTarget(t, secure, func(c net.Conn, r request) bool {
					if r.Header.Get("X-Next") != "" {
						says(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext")
						return true
					}
					says(c, tt.in...)
					said <- struct{}{}
					return true
				})
				tr := s.transport(nil)
				method := tt.method
				if method == "" {
					method = http.MethodGet
				}
				_, body, err := whole(tr.RoundTrip(s.ask(t.Context(), method, "")))
				if err != nil || body != tt.body {
					t.Fatalf("%q %v, want %q", body, err, tt.body)
				}
				<-said
				_, body, err = whole(tr.RoundTrip(s.ask(t.Context(), http.MethodGet, "", "X-Next", "1")))
				if err != nil || body != "next" {
					t.Fatalf("the next answer is %q %v", body, err)
				}
				if again := s.accepted.Load() == 1; again != tt.again {
					t.Errorf("the next request went on the same connection: %t, want %t", again, tt.again)
				}
			})
		})
	}
}

// TestBodyToTheEnd reads a body whose end is that of the connection.
func TestBodyToTheEnd(t *testing.T) {
	each(t, func(t *testing.T, secure bool) {
		s := newTarget(t, secure, func(c net.Conn, _ request) bool {
			says(c, "HTTP/1.1 200 OK\r\n\r\nall of ", "it")
			return false
		})
		tr := s.transport(nil)
		for range 2 {
			if _, body, err := s.get(tr); err != nil || body != "all of it" {
				t.Errorf("%q %v", body, err)
			}
		}
		if n := s.accepted.Load(); n != 2 {
			t.Errorf("%d connections", n)
		}
	})
}

// TestClosedEarly closes a body before its end, also while it is read.
func TestClosedEarly(t *testing.T) {
	each(t, func(t *testing.T, secure bool) {
		gone := make(chan struct{}, 2)
		s := newTarget(t, secure, func(c net.Conn, _ request) bool {
			says(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")
			_, _ = io.Copy(io.Discard, c)
			gone <- struct{}{}
			return false
		})
		tr := s.transport(nil)
		res, err := tr.RoundTrip(s.ask(t.Context(), http.MethodGet, ""))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		<-gone
		if n, err := res.Body.Read(make([]byte, 10)); n != 0 || err == nil || err == io.EOF {
			t.Errorf("read of a closed body: %d %v", n, err)
		}

		if res, err = tr.RoundTrip(s.ask(t.Context(), http.MethodGet, "")); err != nil {
			t.Fatal(err)
		}
		began, failed := make(chan struct{}), make(chan error)
		go func() {
			_, _ = io.ReadFull(res.Body, make([]byte, 4))
			close(began)
			_, err := io.Copy(io.Discard, res.Body)
			failed <- err
		}()
		<-began
		_ = res.Body.Close()
		if err := <-failed; err == nil {
			t.Error("a part was given for a whole")
		}
		<-gone
		if kept := tr.idleNow(); len(kept) > 0 {
			t.Errorf("%d connections were kept", len(kept))
		}
	})
}

// TestTickets has a target write what TLS says to itself behind an answer.
func TestTickets(t *testing.T) {
	s := newTarget(t, true, func(c net.Conn, _ request) bool { says(c, ok); return true })
	c, err := s.dial(context.Background(), "https", s.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	// The target has sent a ticket at the end of its handshake, and nobody has read it yet.
	for range 3 {
		if !c.quiet() {
			t.Fatal("a connection on which nothing was said is not good")
		}
	}
}
