package app_test

import (
	"bufio"
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// spareListeners has listeners that exist before the policy, so that the policy can list their ports.
type spareListeners struct {
	free  []net.Listener
	ports []int
}

func newSpareListeners(t *testing.T, n int) *spareListeners {
	t.Helper()
	s := &spareListeners{}
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		s.free, s.ports = append(s.free, l), append(s.ports, l.Addr().(*net.TCPAddr).Port)
	}
	return s
}

func (s *spareListeners) take(t *testing.T) (l net.Listener, port string) {
	t.Helper()
	if len(s.free) == 0 {
		t.Fatal("no listener is left")
	}
	l, s.free = s.free[0], s.free[1:]
	return l, strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// rawTarget starts a target that completes the TLS handshake, and then runs the test's function.
func rawTarget(t *testing.T, s *spareListeners, config *tls.Config, speak func(net.Conn)) string {
	t.Helper()
	plain, port := s.take(t)
	l := tls.NewListener(plain, config)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer func() { _ = conn.Close() }()
				_ = conn.SetDeadline(time.Now().Add(waitTimeout))
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					speak(conn)
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); running.Wait() })
	return port
}

func reset(conn net.Conn) {
	if c, ok := conn.(*tls.Conn); ok {
		if tcp, ok := c.NetConn().(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	_ = conn.Close()
}

func TestUpstreamFaults(t *testing.T) {
	targets := newSpareListeners(t, 40)
	w := run(t, setup{open: true, manifests: func(w *world) string {
		ports := []json.Number{json.Number(w.plain.port)}
		for _, port := range targets.ports {
			ports = append(ports, json.Number(strconv.Itoa(port)))
		}
		return endpoint(w, "web", m{"destinations": []m{{"pattern": `https://[a-z.]*lectern\.test:\d+/.*`}}, "ports": ports}) +
			endpoint(w, "hasty", m{"origins": []m{{"domain": "example.edu"}}, "destinations": []m{{"pattern": `https://[a-z.]*lectern\.test:\d+/.*`}}, "ports": ports, "timeouts": m{"connect": "500ms", "headers": "200ms"}}) +
			endpoint(w, "total", m{"origins": []m{{"domain": "example.net"}}, "destinations": []m{{"pattern": `https://[a-z.]*lectern\.test:\d+/.*`}}, "ports": ports, "timeouts": m{"total": "300ms"}}) +
			endpoint(w, "plain", m{"origins": []m{{"domain": "example.org"}}, "destinations": []m{{"pattern": `https://[a-z.]*lectern\.test:\d+/.*`}}, "ports": ports, "timeouts": m{"idle": "200ms"}, "credentials": nil})
	}})
	good := &tls.Config{Certificates: []tls.Certificate{w.authority.certificate(t, time.Now().Add(time.Hour), "*.lectern.test")}}
	expired := &tls.Config{Certificates: []tls.Certificate{w.authority.certificate(t, time.Now().Add(-time.Hour), "*.lectern.test")}}
	wrong := &tls.Config{Certificates: []tls.Certificate{w.authority.certificate(t, time.Now().Add(time.Hour), "other.test")}}
	stranger := &tls.Config{Certificates: []tls.Certificate{newAuthority(t).certificate(t, time.Now().Add(time.Hour), "*.lectern.test")}}
	old := &tls.Config{Certificates: good.Certificates, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	silent := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) } // until the proxy closes the connection
	answerWith := func(text string) func(net.Conn) {
		return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
	}
	secretGarbage := "\x00\x01 " + canary + "\r\n\r\n"
	refuses, closed := targets.take(t)
	_ = refuses.Close()
	_, silentPort := targets.take(t) // accepts connections and never completes the TLS handshake
	for _, tt := range []struct {
		name, port string
		code       string
		status     int
	}{
		{"refuses", closed, "upstream_unreachable", 502},
		{"never shakes hands", silentPort, "upstream_timeout", 504},
		{"expired certificate", rawTarget(t, targets, expired, silent), "upstream_unreachable", 502},
		{"certificate of another name", rawTarget(t, targets, wrong, silent), "upstream_unreachable", 502},
		{"certificate of a stranger", rawTarget(t, targets, stranger, silent), "upstream_unreachable", 502},
		{"old TLS", rawTarget(t, targets, old, silent), "upstream_unreachable", 502},
		{"no TLS", w.plain.port, "upstream_unreachable", 502},
		{"never answers", rawTarget(t, targets, good, silent), "upstream_timeout", 504},
		{"closes without an answer", rawTarget(t, targets, good, func(net.Conn) {}), "upstream_unreachable", 502},
		{"resets without an answer", rawTarget(t, targets, good, reset), "upstream_unreachable", 502},
		{"resets in the headers", rawTarget(t, targets, good, func(c net.Conn) { answerWith("HTTP/1.1 200 OK\r\nX-A")(c); reset(c) }), "upstream_unreachable", 502},
		{"ends in a short body", rawTarget(t, targets, good, answerWith("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")), "upstream_unreachable", 502},
		{"garbage", rawTarget(t, targets, good, answerWith(secretGarbage)), "upstream_unreachable", 502},
		{"garbage in a header", rawTarget(t, targets, good, answerWith("HTTP/1.1 200 OK\r\n"+secretGarbage)), "upstream_unreachable", 502},
		{"a switch of protocols", rawTarget(t, targets, good, answerWith("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")), "upstream_unreachable", 502},
		{"two lengths", rawTarget(t, targets, good, answerWith("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy")), "upstream_unreachable", 502},
		{"a status below 100", rawTarget(t, targets, good, answerWith("HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n")), "upstream_unreachable", 502},
		{"too many headers", rawTarget(t, targets, good, answerWith("HTTP/1.1 200 OK\r\n"+strings.Repeat("X-A: b\r\n", 1001)+"\r\n")), "upstream_unreachable", 502},
		{"too many interim answers", rawTarget(t, targets, good, answerWith(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 65)+"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")), "upstream_unreachable", 502},
		{"endless headers", rawTarget(t, targets, good, func(c net.Conn) {
			answerWith("HTTP/1.1 200 OK\r\n")(c)
			for range 1000 {
				if _, err := io.WriteString(c, "X-A: "+strings.Repeat("a", 1000)+"\r\n"); err != nil {
					return
				}
			}
		}), "upstream_unreachable", 502},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := call{target: "https://api.lectern.test:" + tt.port + "/", headers: []string{"X-K", "{{cred_main}}"}}
			if tt.code == "upstream_timeout" {
				c = c.from("https://example.edu")
			}
			got := w.do(c)
			if got.StatusCode != tt.status || got.code() != tt.code {
				t.Errorf("%d %s", got.StatusCode, got.body)
			}
			for _, leak := range []string{"127.0.0.1", canary, "tls:", "x509", "dial", "read:", "EOF"} {
				if strings.Contains(got.body, leak) {
					t.Errorf("the refusal tells %q: %s", leak, got.body)
				}
			}
		})
	}
	t.Run("no such name", func(t *testing.T) {
		if got := w.do(call{target: "https://nowhere.lectern.test:" + closed + "/"}); got.code() != "upstream_unreachable" {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
	})
	t.Run("too long in all", func(t *testing.T) {
		got := w.do(call{target: "https://api.lectern.test:" + rawTarget(t, targets, good, silent) + "/"}.from("https://example.net"))
		if got.code() != "upstream_timeout" {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
	})
	t.Run("as many headers and interim answers as may be", func(t *testing.T) {
		speak := answerWith(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 64) + "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: b\r\n", 999) + "Content-Length: 2\r\n\r\nok")
		got := w.do(call{target: "https://api.lectern.test:" + rawTarget(t, targets, good, speak) + "/", headers: []string{"X-K", "{{cred_main}}"}})
		if got.StatusCode != 200 || got.body != "ok" || len(got.Header["X-A"]) != 999 {
			t.Errorf("%d %s, %d headers", got.StatusCode, got.body, len(got.Header["X-A"]))
		}
	})
	for name, speak := range map[string]func(net.Conn){
		"resets in the body":     func(c net.Conn) { answerWith("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")(c); reset(c) },
		"ends in the body":       answerWith("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome"),
		"ends in a chunk":        answerWith("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nsome"),
		"falls silent in a body": func(c net.Conn) { answerWith("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")(c); silent(c) },
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := w.client.Do(w.request(call{target: "https://api.lectern.test:" + rawTarget(t, targets, good, speak) + "/"}.from("https://example.org")))
			if err != nil {
				return // the connection ended before the headers were sent
			}
			b, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err == nil {
				t.Errorf("a truncated body looks complete: %q", b)
			}
		})
	}
	if strings.Contains(w.log.String(), canary) {
		t.Error("the log shows what the target sent")
	}
}

func TestLimits(t *testing.T) {
	hold, entered := make(chan struct{}), make(chan struct{}, 8)
	w := run(t, setup{open: true, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			entered <- struct{}{}
			<-hold
		}
		if r.URL.Path == "/large" {
			_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
			return
		}
		if r.URL.Path == "/packed" {
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			_, _ = io.WriteString(packed, strings.Repeat("x", 100<<10))
			_ = packed.Close()
			return
		}
		if r.Method == http.MethodHead {
			w.Header().Set("Content-Length", "123456")
			return
		}
		echo(w, r)
	}), manifests: func(w *world) string {
		return endpoint(w, "concurrent", m{"limits": m{"concurrent": 1}}) +
			endpoint(w, "rate", m{"origins": []m{{"domain": "example.net"}}, "limits": m{"requestsPerSecond": 1, "burst": 2}}) +
			endpoint(w, "bytes", m{"origins": []m{{"domain": "example.org"}}, "limits": m{"requestBytes": 100, "responseBytes": 1000}})
	}})
	ended := make(chan answer)
	go func() { ended <- w.do(call{target: w.url("/hold")}) }()
	<-entered
	if got := w.do(call{target: w.url("/")}); got.code() != "rate_limited" || got.StatusCode != 429 || got.Header.Get("Retry-After") == "" {
		t.Errorf("one too many at a time: %d %s", got.StatusCode, got.body)
	}
	close(hold)
	if got := <-ended; got.StatusCode != 200 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	awaitRate(t, func() answer { return w.do(call{target: w.url("/")}.from("https://example.net")) })
	for _, chunked := range []bool{false, true} {
		got := w.do(call{method: "POST", target: w.url("/"), body: strings.Repeat("x", 101), chunked: chunked}.from("https://example.org"))
		if got.code() != "payload_too_large" {
			t.Errorf("a body over the endpoint's limit: %d %s", got.StatusCode, got.body)
		}
	}
	if s := w.do(call{method: "POST", target: w.url("/"), body: "x"}.from("https://example.org")); s.StatusCode != 200 {
		t.Errorf("%d %s", s.StatusCode, s.body)
	}
	resp, err := w.client.Do(w.request(call{target: w.url("/large")}.from("https://example.org")))
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	if err == nil {
		t.Error("an answer over the endpoint's limit came whole")
	}
	// The limit is that of bytes from the target, before they are decoded.
	if got := w.do(call{target: w.url("/packed")}.from("https://example.org")); got.StatusCode != 200 || got.body != strings.Repeat("x", 100<<10) {
		t.Errorf("an answer that is small until it is decoded: %d, %d bytes", got.StatusCode, len(got.body))
	}
	if got := w.do(call{method: http.MethodHead, target: w.url("/")}.from("https://example.org")); got.StatusCode != 200 || got.ContentLength != 123456 {
		t.Errorf("HEAD: %d, the length %d; want that of the target", got.StatusCode, got.ContentLength)
	}
}

// TestLongSlowAnswer has a target send a searched answer slowly and for twice the idle time-out. The search holds the text back,
// which could begin a secret. The time-out counts the target's bytes, so the answer comes whole.
func TestLongSlowAnswer(t *testing.T) {
	needs.Long(t)
	const slowly = 20
	w := run(t, setup{open: true, manifests: func(w *world) string {
		return endpoint(w, "web", m{"timeouts": m{"idle": "5s"}})
	}, handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for range slowly {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(500 * time.Millisecond) // how slow the target is; the test waits for the end of the answer
		}
	})})
	if got := w.do(call{target: w.url("/")}); got.StatusCode != 200 || len(got.body) != slowly {
		t.Errorf("%d, %d bytes of %d", got.StatusCode, len(got.body), slowly)
	}
}

// TestLimitsOfTheDecidedEndpoint sends a body whose placeholder leads to another endpoint than the headers do. The limits
// of that endpoint apply.
func TestLimitsOfTheDecidedEndpoint(t *testing.T) {
	w := run(t, setup{open: true, manifests: func(w *world) string {
		return endpoint(w, "a-free", m{"credentials": []string{"cred_other"}}) +
			endpoint(w, "b-limited", m{"credentials": []string{"cred_main"}, "limits": m{"requestsPerSecond": 1, "burst": 2, "requestBytes": 20}})
	}})
	post := func(body string) answer {
		return w.do(call{method: "POST", target: w.url("/"), body: body, headers: []string{"X-Use-Body-Templating", "true", "Content-Type", "text/plain"}})
	}
	if got := post("{{cred_main}} and more than 20 bytes"); got.code() != "payload_too_large" {
		t.Errorf("a body over the limit: %d %s", got.StatusCode, got.body)
	}
	if got := post("{{cred_other}} and more than 20 bytes").seen(t); got.Body != other+" and more than 20 bytes" {
		t.Errorf("the target saw %+v", got)
	}
	awaitRate(t, func() answer { return post("{{cred_main}}") })
}

// awaitRate checks that two requests are within a rate of 1 a second with a burst of 2. It waits until a later request is over
// the rate, because a busy machine may send fewer than one a second.
func awaitRate(t *testing.T, send func() answer) {
	t.Helper()
	for range 2 {
		if got := send(); got.code() == "rate_limited" {
			t.Errorf("within the burst: %d %s", got.StatusCode, got.body)
		}
	}
	eventually.True(t, "a request is over the rate", func() bool { return send().code() == "rate_limited" })
}
