package h1

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"
)

func TestAnswersThatAreNone(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   string
		want error // nil: any
	}{
		{"nothing", "", io.EOF},
		{"garbage", "\x00\x01garbage\r\n\r\n", nil},
		{"half a status line", "HTTP/1.1 2", nil},
		{"half of the headers", "HTTP/1.1 200 OK\r\nX-A", nil},
		{"a switch of protocols", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", errSwitched},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy", nil},
		{"a length that is none", "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nxy", nil},
		{"an unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", nil},
		{"two codings", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", nil},
		{"a bare carriage return", "HTTP/1.1 200 OK\r\nX-A: b\rContent-Length: 9\r\nContent-Length: 2\r\n\r\nok", nil},
		{"another version", "HTTP/9 200 OK\r\n\r\n", nil},
		{"a line that is no header", "HTTP/1.1 200 OK\r\nnothing\r\n\r\n", nil},
		{"a header over the limit", "HTTP/1.1 200 OK\r\nX-L: " + strings.Repeat("l", 64<<10) + "\r\n\r\n", errHeaders},
		{"headers over the limit", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-L: l\r\n", 9<<10) + "\r\n", errHeaders},
		{"a status line over the limit", "HTTP/1.1 200 " + strings.Repeat("O", 64<<10) + "\r\n\r\n", errHeaders},
		{"interim answers without end", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 4<<10), errHeaders},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, secure bool) {
				s := newTarget(t, secure, func(c net.Conn, _ request) bool { says(c, tt.in); return false })
				tr := s.transport(nil)
				res, err := tr.RoundTrip(s.ask(t.Context(), http.MethodGet, ""))
				if err == nil {
					_ = res.Body.Close()
					t.Fatalf("an answer: %v", res)
				}
				if tt.want != nil && !errors.Is(err, tt.want) {
					t.Errorf("%v, want %v", err, tt.want)
				}
				if n := s.accepted.Load(); n != 1 {
					t.Errorf("%d connections: a new one is not tried again", n)
				}
			})
		})
	}
}

func TestBodiesThatBreakOff(t *testing.T) {
	for _, tt := range []struct{ name, in string }{
		{"within a length", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome"},
		{"within a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nsome"},
		{"between chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n"},
		{"before the trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n0\r\n"},
		{"within the trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n0\r\nX-A: b\r\n"},
		{"in a size that is none", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\nx\r\n"},
		{"with a bare line feed", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\nsome\r\n0\r\n\r\n"},
		{"in trailers without end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n0\r\n" + strings.Repeat("X-A: b\r\n", 8<<10) + "\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTarget(t, true, func(c net.Conn, _ request) bool { says(c, tt.in); return false })
			tr := s.transport(nil)
			if _, body, err := s.get(tr); err == nil {
				t.Errorf("a part was given for a whole: %q", body)
			}
			if kept := tr.idleNow(); len(kept) > 0 {
				t.Errorf("%d connections were kept", len(kept))
			}
		})
	}
}

// TestClosedMeanwhile has a target close a connection that was kept. No request notices, not even one that must
// not be sent twice.
func TestClosedMeanwhile(t *testing.T) {
	each(t, func(t *testing.T, secure bool) {
		for _, reset := range []bool{false, true} {
			read := make(chan struct{}, 2)
			s := newTarget(t, secure, func(c net.Conn, r request) bool {
				says(c, ok)
				<-read // what was not read yet goes with a reset
				if reset {
					if secure, is := c.(interface{ NetConn() net.Conn }); is {
						c = secure.NetConn()
					}
					_ = c.(*net.TCPConn).SetLinger(0)
				}
				return false
			})
			tr := s.transport(nil)
			if _, _, err := s.get(tr); err != nil {
				t.Fatal(err)
			}
			kept := tr.idleNow()
			if len(kept) != 1 {
				t.Fatalf("%d connections were kept", len(kept))
			}
			close(read)
			until(t, "the end of the connection is seen", func() bool { return !kept[0].quiet() })
			if _, body, err := whole(tr.RoundTrip(s.ask(t.Context(), http.MethodPost, "once"))); err != nil || body != "ok" {
				t.Errorf("%q %v", body, err)
			}
			if n := s.accepted.Load(); n != 2 {
				t.Errorf("%d connections", n)
			}
		}
	})
}

// TestOnceMore has a target close a kept connection when the next request has come.
func TestOnceMore(t *testing.T) {
	for _, tt := range []struct {
		name, method, body string
		headers            []string
		begins             string // what comes of an answer first
		again              bool
	}{
		{"GET", "GET", "", nil, "", true},
		{"HEAD", "HEAD", "", nil, "", true},
		{"OPTIONS", "OPTIONS", "", nil, "", true},
		{"POST", "POST", "body", nil, "", false},
		{"PUT", "PUT", "body", nil, "", false},
		{"DELETE", "DELETE", "", nil, "", false},
		{"POST that says so", "POST", "body", []string{"Idempotency-Key", "1"}, "", true},
		{"after a byte", "GET", "", nil, "H", false},
		{"after an interim answer", "GET", "", nil, "HTTP/1.1 103 Early Hints\r\n\r\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, secure bool) {
				var mu sync.Mutex
				var came []string
				s := newTarget(t, secure, func(c net.Conn, r request) bool {
					mu.Lock()
					came = append(came, r.Method+" "+r.body)
					mu.Unlock()
					if r.n == 1 {
						says(c, tt.begins)
						return false
					}
					says(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					return true
				})
				tr := s.transport(nil)
				if _, _, err := s.get(tr); err != nil {
					t.Fatal(err)
				}
				_, _, err := whole(tr.RoundTrip(s.ask(t.Context(), tt.method, tt.body, tt.headers...)))
				if (err == nil) != tt.again {
					t.Errorf("sent once more: %v, want %t", err, tt.again)
				}
				tr.Close()
				_ = s.listener.Close()
				s.running.Wait()
				want := 2
				if tt.again {
					want = 3
				}
				if len(came) != want || came[len(came)-1] != tt.method+" "+tt.body {
					t.Errorf("the target saw %q", came)
				}
			})
		})
	}
}

func TestCancel(t *testing.T) {
	errEnough := errors.New("enough")
	for _, tt := range []struct{ name, in string }{
		{"before an answer", ""},
		{"within the headers", "HTTP/1.1 200 OK\r\nX-A"},
		{"within the body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nsome"},
		{"within the chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, secure bool) {
				said, gone := make(chan struct{}), make(chan struct{})
				s := newTarget(t, secure, func(c net.Conn, _ request) bool {
					says(c, tt.in)
					close(said)
					_, _ = io.Copy(io.Discard, c)
					close(gone)
					return false
				})
				tr := s.transport(nil)
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() { <-said; cancel(errEnough) }()
				_, _, err := whole(tr.RoundTrip(s.ask(ctx, http.MethodGet, "")))
				if !errors.Is(err, errEnough) {
					t.Errorf("%v, want the cause", err)
				}
				<-gone
				if kept := tr.idleNow(); len(kept) > 0 {
					t.Errorf("%d connections were kept", len(kept))
				}
			})
		})
	}
	t.Run("while nobody reads", func(t *testing.T) {
		gone := make(chan struct{})
		s := newTarget(t, true, func(c net.Conn, _ request) bool {
			says(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nsome")
			_, _ = io.Copy(io.Discard, c)
			close(gone)
			return false
		})
		ctx, cancel := context.WithCancel(t.Context())
		res, err := s.transport(nil).RoundTrip(s.ask(ctx, http.MethodGet, ""))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		cancel()
		<-gone // although the body is neither read nor closed
	})
	t.Run("before anything", func(t *testing.T) {
		s := newTarget(t, true, func(c net.Conn, _ request) bool { says(c, ok); return true })
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		if _, _, err := whole(s.transport(nil).RoundTrip(s.ask(ctx, http.MethodGet, ""))); err == nil {
			t.Error("an answer")
		}
	})
	t.Run("when all is over", func(t *testing.T) {
		s := newTarget(t, true, func(c net.Conn, _ request) bool { says(c, ok); return true })
		tr := s.transport(nil)
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			if _, body, err := whole(tr.RoundTrip(s.ask(ctx, http.MethodGet, ""))); err != nil || body != "ok" {
				t.Errorf("%q %v", body, err)
			}
			cancel()
		}
		if n := s.accepted.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

func TestRequestsThatAreNotSent(t *testing.T) {
	s := newTarget(t, false, func(c net.Conn, _ request) bool { says(c, ok); return true })
	tr := s.transport(nil)
	for _, tt := range []struct {
		name   string
		change func(*http.Request)
	}{
		{"a line break in a header", func(r *http.Request) { r.Header["X-A"] = []string{"b\r\nX-C: d"} }},
		{"a line break in a header's name", func(r *http.Request) { r.Header["X-A\r\nX-C"] = []string{"b"} }},
		{"a space in a header's name", func(r *http.Request) { r.Header["X A"] = []string{"b"} }},
		{"NUL in a header", func(r *http.Request) { r.Header["X-A"] = []string{"b\x00"} }},
		{"a space in the method", func(r *http.Request) { r.Method = "GET /evil HTTP/1.1\r\nX:" }},
		{"a line break in the query", func(r *http.Request) { r.URL.RawQuery = "a HTTP/1.1\r\nX-A: b" }},
		{"another scheme", func(r *http.Request) { r.URL.Scheme = "ftp" }},
		{"no host", func(r *http.Request) { r.URL.Host = "" }},
		{"CONNECT", func(r *http.Request) { r.Method = "CONNECT" }},
		{"an upgrade", func(r *http.Request) { r.Header["Upgrade"] = []string{"websocket"} }},
		{"a body that streams", func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), 1 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := s.ask(t.Context(), http.MethodGet, "")
			tt.change(r)
			if _, _, err := whole(tr.RoundTrip(r)); err == nil {
				t.Error("it was sent")
			}
		})
	}
	if _, _, err := s.get(tr); err != nil {
		t.Error(err)
	}
}

func TestTakes(t *testing.T) {
	held := func(n int) func(*http.Request) {
		return func(r *http.Request) {
			r.Body, r.ContentLength = Held{io.NopCloser(strings.NewReader(""))}, int64(n)
			r.GetBody = func() (io.ReadCloser, error) { return r.Body, nil }
		}
	}
	for _, tt := range []struct {
		name string
		in   func(*http.Request)
		want bool
	}{
		{"no body", func(r *http.Request) { r.Body = nil }, true},
		{"an empty body", func(r *http.Request) { r.Body = http.NoBody }, true},
		{"a held body", held(maxHeld), true},
		{"a large held body", held(maxHeld + 1), false},
		{"a held body of unknown length", held(-1), false},
		{"a body that streams", func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), 1 }, false},
		{"trailers", func(r *http.Request) { r.Trailer = http.Header{"X": nil} }, false},
		{"Expect", func(r *http.Request) { r.Header["Expect"] = []string{"100-continue"} }, false},
		{"Upgrade", func(r *http.Request) { r.Header["Upgrade"] = []string{"h2c"} }, false},
		{"CONNECT", func(r *http.Request) { r.Method = http.MethodConnect }, false},
	} {
		r, err := http.NewRequest(http.MethodGet, "https://a.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		tt.in(r)
		if got := Takes(r); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}

// TestEarlyAnswer has a target answer before it reads the body.
func TestEarlyAnswer(t *testing.T) {
	each(t, func(t *testing.T, secure bool) {
		s := newTarget(t, secure, func(c net.Conn, r request) bool {
			says(c, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
			_, _ = io.Copy(io.Discard, r.Body) // closed before that, the answer would go with it
			return false
		})
		tr := s.transport(nil)
		res, body, err := whole(tr.RoundTrip(s.ask(t.Context(), http.MethodPost, strings.Repeat("x", maxHeld), "X-Unread", "1")))
		if err != nil || res.StatusCode != http.StatusRequestEntityTooLarge || body != "no" {
			t.Errorf("%v %q %v", res, body, err)
		}
	})
}

func TestTrace(t *testing.T) {
	s := newTarget(t, true, func(c net.Conn, _ request) bool {
		says(c, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", ok)
		return true
	})
	tr := s.transport(nil)
	errHint := errors.New("no hints")
	for _, hinted := range []error{nil, errHint} {
		var steps []string
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn:      func(i httptrace.GotConnInfo) { steps = append(steps, "connection") },
			WroteRequest: func(i httptrace.WroteRequestInfo) { steps = append(steps, "request") },
			Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				steps = append(steps, "interim "+h.Get("Link"))
				return hinted
			},
		})
		_, _, err := whole(tr.RoundTrip(s.ask(ctx, http.MethodGet, "")))
		if !errors.Is(err, hinted) || (err == nil) != (hinted == nil) {
			t.Errorf("%v, want %v", err, hinted)
		}
		if got := strings.Join(steps, ", "); got != "connection, request, interim x" {
			t.Errorf("the trace saw %s", got)
		}
	}
}
