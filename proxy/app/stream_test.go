package app_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// TestPiecesArriveOneByOne sends each piece of a stream only after the piece before has arrived whole, by the types of
// streaming APIs. Each answer asks nginx not to buffer.
func TestPiecesArriveOneByOne(t *testing.T) {
	const pieces = 5
	var contentType, format string
	next := make(chan struct{})
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for i := range pieces {
			_, _ = fmt.Fprintf(w, format, i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	})})
	for _, kind := range [][2]string{
		{"text/event-stream", "data: %d\n\n"}, {"text/event-stream", "data: {\"word\":\"sk_live_%d\"}\r\n\r\n"}, {"application/x-ndjson", "{\"n\":%d}\n"}, {"application/jsonl", "%d\n"},
		{"application/stream+json", "{\"n\":%d}"}, {"application/json", "[{\"text\": \"%d\"},\n"}, {"application/json-seq", "\x1e{\"n\":%d}\n"},
		{"text/plain", "line %d\n"}, {"text/plain", "word %d. "}, {"application/vnd.amazon.eventstream", "\x00\x00\x00\x10{\"n\":%d}\x9f\x01\xc3\x80"}, {"", "%d\xff"},
	} {
		for _, with := range []string{"", "{{cred_main}}"} {
			contentType, format = kind[0], kind[1]
			resp, err := w.client.Do(w.request(call{target: w.url("/"), headers: []string{"X-K", with}}))
			if err != nil {
				t.Fatal(err)
			}
			if got := resp.Header["X-Accel-Buffering"]; !slices.Equal(got, []string{"no"}) {
				t.Errorf("%s: X-Accel-Buffering is %q", contentType, got)
			}
			for i := range pieces {
				want := fmt.Sprintf(format, i)
				got := make([]byte, len(want))
				if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
					t.Fatalf("%s, piece %d: %q %v", contentType, i, got, err)
				}
				next <- struct{}{}
			}
			_ = resp.Body.Close()
		}
	}
}

func TestTrailersBothWays(t *testing.T) {
	for _, with := range []string{"", "{{cred_main}}"} {
		w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-Sum, X-Echo, Set-Cookie")
			b, _ := io.ReadAll(r.Body)
			_, _ = w.Write(b)
			w.Header().Set("X-Sum", "of-the-target "+r.Trailer.Get("X-Sum"))
			w.Header().Set("X-Echo", r.Header.Get("X-K"))
			w.Header().Set("Set-Cookie", "a=b")
			w.Header().Set(http.TrailerPrefix+"X-Late", "unannounced")
		})})
		r := w.request(call{method: "POST", target: w.url("/"), body: "body", chunked: true, headers: []string{"X-K", with, "Te", "trailers"}})
		r.Trailer = http.Header{"X-Sum": {"of-the-caller"}, "Cookie": {"c=d"}}
		resp, err := w.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got := read(t, resp)
		want := ""
		if with != "" {
			want = "[redacted]"
		}
		if got.body != "body" || resp.Trailer.Get("X-Sum") != "of-the-target of-the-caller" || resp.Trailer.Get("X-Echo") != want ||
			resp.Trailer.Get("X-Late") != "unannounced" || len(resp.Trailer) != 3 {
			t.Errorf("body %q, trailers %v", got.body, resp.Trailer)
		}
	}
}

func TestHTTP2BothWays(t *testing.T) {
	w := run(t, setup{open: true})
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(w.request(call{method: "POST", target: w.url("/{{cred_main}}"), body: "body"}))
	if err != nil {
		t.Fatal(err)
	}
	if s := read(t, resp).seen(t); s.Proto != "HTTP/2.0" || s.Body != "body" || s.URI != "/"+canary {
		t.Errorf("the target saw %+v", s)
	}
}

func TestContinueComesFromTheTarget(t *testing.T) {
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusForbidden) // does not read the body, so net/http sends no 100 Continue
			return
		}
		echo(w, r)
	})})
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(waitTimeout))
	ask := func(path string) {
		_, _ = fmt.Fprintf(conn, "POST /proxy?url=%s HTTP/1.1\r\nHost: a\r\nX-Project-ID: %s\r\nX-Environment: prod\r\nOrigin: %s\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n",
			url.QueryEscape(w.url(path)), project, origin)
	}
	r := bufio.NewReader(conn)
	ask("/take")
	if line, err := r.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q %v", line, err)
	}
	_, _ = r.ReadString('\n')
	_, _ = io.WriteString(conn, "body")
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s := read(t, resp).seen(t); s.Body != "body" {
		t.Errorf("the target saw %+v", s)
	}
	ask("/refuse")
	resp, err = http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("%d", resp.StatusCode)
	}
}

func TestEarlyAnswer(t *testing.T) {
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, "no more")
	})})
	body, feed := io.Pipe()
	defer func() { _ = feed.Close() }()
	r := w.request(call{method: "POST", target: w.url("/")})
	r.Body, r.ContentLength = body, -1
	go func() { _, _ = feed.Write([]byte("begin")) }() // the body never ends
	resp, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, resp); got.StatusCode != http.StatusRequestEntityTooLarge || got.body != "no more" {
		t.Errorf("%d %q", got.StatusCode, got.body)
	}
}

// TestConversation sends and receives lines in turns within one request.
func TestConversation(t *testing.T) {
	w := run(t, setup{open: true, manifests: passThrough, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.WriteString(w, "hello\n")
		_ = http.NewResponseController(w).Flush()
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			_, _ = fmt.Fprintf(w, "got %s\n", lines.Text())
			_ = http.NewResponseController(w).Flush()
		}
	})})
	body, feed := io.Pipe()
	r := w.request(call{method: "POST", target: w.url("/")})
	r.Body, r.ContentLength = body, -1
	go func() { _, _ = io.WriteString(feed, "0\n") }()
	resp, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answers := bufio.NewReader(resp.Body)
	if line, _ := answers.ReadString('\n'); line != "hello\n" {
		t.Fatalf("%q", line)
	}
	for i := range 5 {
		if line, err := answers.ReadString('\n'); line != fmt.Sprintf("got %d\n", i) {
			t.Fatalf("%q %v", line, err)
		}
		if i < 4 {
			_, _ = fmt.Fprintf(feed, "%d\n", i+1)
		}
	}
	_ = feed.Close()
	if rest, err := io.ReadAll(answers); len(rest) > 0 || err != nil {
		t.Errorf("%q %v", rest, err)
	}
}

func TestCallerGoneCancelsTheTarget(t *testing.T) {
	gone := make(chan struct{})
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})})
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := w.client.Do(w.request(call{target: w.url("/")}).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = resp.Body.Close()
	select {
	case <-gone:
	case <-time.After(waitTimeout):
		t.Fatal("the target's request was not cancelled")
	}
}

// TestBytesAreExact sends random bytes in both directions, with and without a Content-Length.
func TestBytesAreExact(t *testing.T) { exact(t, 16<<20) }

func exact(t *testing.T, size int64) {
	w := run(t, setup{open: true, manifests: passThrough, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		n, err := io.Copy(sum, r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("X-Sum", fmt.Sprintf("%d %x", n, sum.Sum(nil)))
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.Copy(w, io.LimitReader(rand.NewChaCha8([32]byte{2}), size))
	})})
	sum := func(seed byte) string {
		h := sha256.New()
		n, _ := io.Copy(h, io.LimitReader(rand.NewChaCha8([32]byte{seed}), size))
		return fmt.Sprintf("%d %x", n, h.Sum(nil))
	}
	up, down := sum(1), sum(2)
	check := func(r *http.Request, up string) {
		t.Helper()
		resp, err := w.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		n, err := io.Copy(h, resp.Body)
		_ = resp.Body.Close()
		if got := fmt.Sprintf("%d %x", n, h.Sum(nil)); got != down || err != nil {
			t.Errorf("%s, down: %s %v, want %s", r.Method, got, err, down)
		}
		if got := resp.Header.Get("X-Sum"); got != up {
			t.Errorf("%s, up: %s, want %s", r.Method, got, up)
		}
	}
	for _, length := range []int64{size, -1} {
		r := w.request(call{method: "POST", target: w.url("/")})
		r.Body, r.ContentLength = io.NopCloser(io.LimitReader(rand.NewChaCha8([32]byte{1}), size)), length
		check(r, up)
	}
	check(w.request(call{target: w.url("/")}), fmt.Sprintf("0 %x", sha256.Sum256(nil)))
}

// TestLongBytesAreExact sends 128 MiB in each direction. The process, which contains both ends and the proxy, must stay
// below 64 MiB.
func TestLongBytesAreExact(t *testing.T) {
	needs.Long(t)
	exact(t, 128<<20)
	t.Run(overHTTP1, func(t *testing.T) { exact(t, 128<<20) })
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc")
	}
	for line := range bytes.Lines(status) {
		if kib, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			var n int
			_, _ = fmt.Sscan(string(kib), &n)
			t.Logf("at most %d MiB resident", n>>10)
			if n > 64<<10 {
				t.Errorf("%d KiB resident", n)
			}
		}
	}
}
