package faulttest_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lectern-dev/lectern/shared/testing/faulttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo returns the address of a server that sends each line back.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); _, _ = io.Copy(c, c) }()
		}
	}()
	return l.Addr().String()
}

func TestProxy(t *testing.T) {
	p := faulttest.NewProxy(t, echo(t))
	dial := func() (net.Conn, func(within time.Duration) (string, error)) {
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		reader := bufio.NewReader(c)
		return c, func(within time.Duration) (string, error) {
			_ = c.SetDeadline(time.Now().Add(within))
			fmt.Fprintln(c, "hello")
			return reader.ReadString('\n')
		}
	}
	_, say := dial()
	if got, err := say(5 * time.Second); got != "hello\n" {
		t.Fatalf("as it comes: %q, %v", got, err)
	}
	p.Slow(100 * time.Millisecond)
	begin := time.Now()
	if got, err := say(5 * time.Second); got != "hello\n" || time.Since(begin) < 200*time.Millisecond {
		t.Errorf("slow: %q after %v, %v", got, time.Since(begin), err)
	}
	p.Heal()
	p.Silence()
	_, quiet := dial()
	if got, err := quiet(50 * time.Millisecond); err == nil {
		t.Errorf("silenced: %q", got)
	}
	p.Heal()
	if got, err := say(5 * time.Second); got != "hello\n" {
		t.Errorf("healed: %q, %v", got, err)
	}
	p.CutAfter(3)
	if got, err := say(5 * time.Second); err == nil || p.Cuts() != 1 {
		t.Errorf("cut: %q, %v", got, err)
	}
	_, say = dial()
	if got, err := say(5 * time.Second); got != "hello\n" {
		t.Errorf("after a cut: %q, %v", got, err)
	}
	p.Refuse()
	if got, err := say(5 * time.Second); err == nil {
		t.Errorf("refused: %q", got)
	}
	// The connection may end before Dial returns, or after it.
	if c, err := net.Dial("tcp", p.Addr()); err == nil {
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		if n, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("refused from the start: %d bytes, %v", n, err)
		}
	}
}

// TestLoadSeesWhatIsWrong checks that Load detects each kind of wrong answer, which all tests with a load depend on.
func TestLoadSeesWhatIsWrong(t *testing.T) {
	const body = `[{"entry_id":"en_1"},{"entry_id":"en_2"}]`
	good := func(w http.ResponseWriter) { _, _ = io.WriteString(w, body) }
	refusal := `{"error":{"code":"unavailable","message":"Later."}}`
	for _, tt := range []struct {
		name                   string
		then                   func(w http.ResponseWriter)
		wrong, refused, broken bool
	}{
		{"good", good, false, false, false},
		{"another body", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "[]") }, true, false, false},
		{"half a body that looks whole", func(w http.ResponseWriter) { _, _ = io.WriteString(w, body[:20]) }, true, false, false},
		{"500", func(w http.ResponseWriter) { w.WriteHeader(500) }, true, false, false},
		{"401", func(w http.ResponseWriter) { w.WriteHeader(401) }, true, false, false},
		{"503 in its shape", func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
			_, _ = io.WriteString(w, refusal)
		}, false, true, false},
		{"503 that names an address", func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
			_, _ = io.WriteString(w, `{"error":{"code":"unavailable","message":"127.0.0.1:5432 is away."}}`)
		}, true, false, false},
		{"503 without Retry-After", func(w http.ResponseWriter) { w.WriteHeader(503); _, _ = io.WriteString(w, refusal) }, true, false, false},
		{"503 of somebody else", func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
			_, _ = io.WriteString(w, "<html>")
		}, true, false, false},
		{"broken off", func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, body[:20])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, false, false, true},
		{"no answer", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, false, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) <= 1 {
					good(w)
					return
				}
				tt.then(w)
			}))
			defer server.Close()
			load := faulttest.Start(t, server.URL, faulttest.LoadOptions{Paths: []string{"/x"}, Clients: 2})
			deadline := time.Now().Add(10 * time.Second)
			for tick := time.NewTicker(time.Millisecond); asked.Load() < 10; <-tick.C {
				if time.Now().After(deadline) {
					t.Fatal("no request came")
				}
			}
			r := load.Stop()
			if got := len(r.Wrong) > 0; got != tt.wrong || r.Refused > 0 != tt.refused || r.Broken > 0 != tt.broken {
				t.Errorf("%v; wrong: %s", r, strings.Join(r.Wrong, "; "))
			}
			if (r.Good > 0) != (tt.name == "good") {
				t.Errorf("%d good answers", r.Good)
			}
		})
	}
}

// TestLoadOfBodies checks that a load can send a body, and that reports can be merged.
func TestLoadOfBodies(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+r.Header.Get("Content-Type")+" "+string(body))
	}))
	defer server.Close()
	load := faulttest.Start(t, server.URL, faulttest.LoadOptions{Paths: []string{"/x"}, Method: "POST", Body: "{}", Clients: 1})
	load.Await(3, 10*time.Second)
	one := load.Stop()
	another := faulttest.Report{Good: 1, Refused: 2, Broken: 3, Wrong: []string{"w"}, Statuses: map[int]int{200: 1, 503: 2},
		Gap: time.Hour, Latencies: []time.Duration{0}, Refusals: []time.Duration{2, 1}}
	all := faulttest.Merge(one, another)
	if one.Good < 3 || len(one.Wrong) > 0 || all.Good != one.Good+1 || all.Refused != 2 || all.Broken != 3 || len(all.Wrong) != 1 ||
		all.Statuses[200] != one.Good+1 || all.Gap != time.Hour || all.Latencies[0] != 0 || all.Refusals[0] != 1 {
		t.Errorf("%+v and %+v are %+v", one, another, all)
	}
}

// TestMalformedChunks checks that net/http closes a connection after a malformed body, even if the handler does not
// read the body.
func TestMalformedChunks(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/read" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
	}))
	t.Cleanup(server.Close)
	for _, path := range []string{"/read", "/unread"} {
		t.Run(path, func(t *testing.T) { faulttest.MalformedChunks(t, server.URL, "POST "+path+" HTTP/1.1\r\nHost: x\r\n") })
	}
}
