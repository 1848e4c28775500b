package app_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
)

// TestRequestsThatTheTargetNeverTookAreRepeated lets an HTTP/2 target say by GOAWAY, after a part of the body, that it
// did not take the request. The next connection must get the whole body once.
func TestRequestsThatTheTargetNeverTookAreRepeated(t *testing.T) {
	targets := newSpareListeners(t, 4)
	w := run(t, setup{open: true, manifests: func(w *world) string { return toSpare(w, "web", targets, nil) }})
	certificate := w.authority.certificate(t, time.Now().Add(time.Hour), "*.lectern.test")
	for _, tt := range []struct {
		name    string
		length  int
		unknown bool // the caller announces no length
		kept    bool
	}{
		{"short", 20, false, true}, {"the longest that is kept", 64 << 10, false, true}, {"longer", 64<<10 + 1, false, false},
		{"of unknown length", 20, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			refused := make(chan struct{})
			port := goingAway(t, targets, certificate, refused)
			body := bytes.Repeat([]byte("0123456789"), tt.length/10+1)[:tt.length]
			source, feed := io.Pipe()
			r := w.request(call{method: "POST", target: "https://api.lectern.test:" + port + "/"})
			r.Body, r.ContentLength = source, int64(tt.length)
			if tt.unknown {
				r.ContentLength = -1
			}
			go func() { // the second part follows after the target has refused the first
				_, _ = feed.Write(body[:10])
				<-refused
				_, _ = feed.Write(body[10:])
				_ = feed.Close()
			}()
			resp, err := w.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			got := read(t, resp)
			if tt.kept && got.body != string(body) || !tt.kept && got.code() != "upstream_unreachable" {
				t.Errorf("%d, %d bytes: %.200s", got.StatusCode, len(got.body), got.body)
			}
		})
	}
}

// TestLossesOnKeptConnectionsAreNamed lets a target close a kept connection after it has read a POST. Only the caller can
// know whether the request may arrive twice.
func TestLossesOnKeptConnectionsAreNamed(t *testing.T) {
	targets := newSpareListeners(t, 1)
	w := run(t, setup{open: true, manifests: func(w *world) string { return toSpare(w, "web", targets, nil) }})
	config := &tls.Config{Certificates: []tls.Certificate{w.authority.certificate(t, time.Now().Add(time.Hour), "*.lectern.test")}}
	port := rawTarget(t, targets, config, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		_, _ = http.ReadRequest(bufio.NewReader(c))
	})
	c := call{method: "POST", target: "https://api.lectern.test:" + port + "/", body: "body"}
	if got := w.do(c); got.body != "ok" {
		t.Fatalf("%d %s", got.StatusCode, got.body)
	}
	if got := w.do(c); got.code() != "upstream_unreachable" {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	eventually.True(t, "a record with the reason", func() bool {
		return strings.Contains(fmt.Sprint(w.audits()), "on a connection that was kept from an earlier request")
	})
}

// goingAway starts an HTTP/2 target. The first connection answers the first byte of a body by a GOAWAY for all
// requests, and closes refused. Later connections answer with the body that they received.
func goingAway(t *testing.T, s *spareListeners, certificate tls.Certificate, refused chan struct{}) (port string) {
	plain, port := s.take(t)
	l := tls.NewListener(plain, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2"}})
	over := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for first := true; ; first = false {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer func() { _ = conn.Close() }()
				_ = conn.SetDeadline(time.Now().Add(waitTimeout))
				if body, stream, f := receive(conn, first); first {
					_ = f.WriteGoAway(0, http2.ErrCodeNo, nil)
					close(refused)
				} else {
					answerHTTP2(f, stream, body)
				}
				<-over
			})
		}
	})
	t.Cleanup(func() { close(over); _ = l.Close(); running.Wait() })
	return port
}

// receive reads an HTTP/2 request to its first byte of a body, or to its end.
func receive(conn net.Conn, toFirstByte bool) (body []byte, stream uint32, f *http2.Framer) {
	f = http2.NewFramer(conn, conn)
	_, _ = io.CopyN(io.Discard, conn, int64(len(http2.ClientPreface)))
	_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	_ = f.WriteWindowUpdate(0, 1<<20)
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return body, stream, f
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = f.WriteSettingsAck()
			}
		case *http2.DataFrame:
			body, stream = append(body, frame.Data()...), frame.StreamID
			if frame.StreamEnded() || toFirstByte && len(body) > 0 {
				return body, stream, f
			}
		}
	}
}

// answerHTTP2 answers a request with a body, in frames of the size that each peer takes.
func answerHTTP2(f *http2.Framer, stream uint32, body []byte) {
	var head bytes.Buffer
	_ = hpack.NewEncoder(&head).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: head.Bytes(), EndHeaders: true})
	for len(body) > 16<<10 {
		_ = f.WriteData(stream, false, body[:16<<10])
		body = body[16<<10:]
	}
	_ = f.WriteData(stream, true, body)
}
