package httpserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lectern-dev/lectern/shared/rawtcp"
	"github.com/lectern-dev/lectern/shared/testing/logtest"
)

// FuzzPlainHead holds that what is answered without net/http having read it is framed as nothing else could frame it:
// one request, without a body, and one that net/http parses or refuses itself.
func FuzzPlainHead(f *testing.F) {
	for _, head := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /a?b HTTP/1.1\r\nhost:\tx:1 \r\nConnection: Keep-Alive\r\nA: b\r\n\r\nGET / HTTP/1.1\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
		"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET / HTTP/1.1\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n A: b\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", "CONNECT x HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		f.Add([]byte(head))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		length := plainHead(in)
		if length == 0 {
			return
		}
		if !bytes.HasSuffix(in[:length], []byte("\r\n\r\n")) || bytes.Index(in, []byte("\r\n\r\n"))+4 != length {
			t.Errorf("%q: %d is not its head", in, length)
		}
		seen := newFraming()
		if n := seen.watch(in[:length]); n != length || seen.refused != nil || !seen.isBetween() {
			t.Errorf("%q: framed otherwise: %d of %d, %v", in, n, length, seen.refused)
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(in[:length])))
		if err != nil {
			return // then net/http answers
		}
		if r.Body != http.NoBody || r.ContentLength != 0 || r.TransferEncoding != nil || r.Close || r.Proto != "HTTP/1.1" ||
			r.Host == "" || r.Header.Get("Expect")+r.Header.Get("Upgrade")+r.Header.Get("Trailer") != "" {
			t.Errorf("%q: %+v", in, r)
		}
	})
}

// noting counts the writes to a connection.
type noting struct {
	*rawtcp.Conn
	writes *atomic.Int64
}

func (c noting) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// standing is a listener with direct, as a Server's are, but for its times.
type standing struct {
	*listener
	writes atomic.Int64
	log    *logtest.Buffer
	ended  chan struct{}
}

// short is an idle time-out to wait for.
const short = 200 * time.Millisecond

func stand(t *testing.T, idleTimeout time.Duration, handler http.HandlerFunc) *standing {
	t.Helper()
	s := &standing{log: &logtest.Buffer{}, ended: make(chan struct{})}
	ctx, cut := context.WithCancel(context.Background())
	s.listener = &listener{name: "test", variable: "LISTEN", address: "127.0.0.1:0", cut: cut, inFlight: new(atomic.Int64)}
	s.server = &http.Server{
		Handler: handler, ConnContext: withConn, BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog: log.New(s.log, "", 0), IdleTimeout: idleTimeout, ReadHeaderTimeout: 300 * time.Millisecond,
	}
	s.direct = newDirect(s.server, slog.New(slog.NewTextHandler(s.log, nil)))
	if err := s.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		_ = s.server.Serve(countsWrites{s})
	}()
	t.Cleanup(func() {
		_ = s.server.Close()
		s.direct.cut()
		cut()
		<-s.ended
		s.direct.departures.stop()
	})
	return s
}

// countsWrites is the listener, whose connections' writes are counted.
type countsWrites struct{ *standing }

func (s countsWrites) Accept() (net.Conn, error) {
	c, err := s.Listener.(accepting).Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(noting{rawtcp.New(c.(*net.TCPConn)), &s.writes}, s.direct.departures, s.direct), nil
}

func (s *standing) dial(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	return c, bufio.NewReader(c)
}

func answer(t *testing.T, in *bufio.Reader) string {
	t.Helper()
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.Status, err)
	}
	return string(body)
}

const plainGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

// An answer that is there as a whole leaves by one write, head and body.
func TestWholeAnswersAreOneWrite(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", 8<<10)
	s := stand(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Path[1:])
		if r.URL.RawQuery == "" {
			w.Header().Set("Content-Length", r.URL.Path[1:])
		}
		_, _ = io.WriteString(w, body[:n])
	})
	c, in := s.dial(t)
	for _, target := range []string{"0", "1", "2048", "4096", "15000", "16384", "65536", "131072", "0?unsaid", "2048?unsaid"} {
		for range 3 {
			s.writes.Store(0)
			say(t, c, "GET /"+target+" HTTP/1.1\r\nHost: x\r\n\r\n")
			length, _, _ := strings.Cut(target, "?")
			if got := answer(t, in); strconv.Itoa(len(got)) != length || !strings.HasPrefix(body, got) {
				t.Errorf("%s: %d bytes", target, len(got))
			}
			if n := s.writes.Load(); n > 1 { // 0: by writev
				t.Errorf("%s: %d writes", target, n)
			}
		}
	}
}

// The type of a body is found in all that net/http would look at, however it is written.
func TestTypeAcrossWrites(t *testing.T) {
	s := stand(t, time.Minute, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<")
		_, _ = io.WriteString(w, "html>"+strings.Repeat("a", 5000))
	})
	c, in := s.dial(t)
	say(t, c, plainGet)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Header.Get("Content-Type"); got != "text/html; charset=utf-8" {
		t.Errorf("%q", got)
	}
}

// A connection that direct answered on is closed once it was idle for as long as net/http's, which knows nothing of its
// requests; one that is used lives on.
func TestIdleTimeoutBehindDirect(t *testing.T) {
	s := stand(t, short, func(http.ResponseWriter, *http.Request) {})
	c, in := s.dial(t)
	for range 8 {
		say(t, c, plainGet)
		answer(t, in)
		time.Sleep(100 * time.Millisecond)
	}
	begin := time.Now()
	if _, err := in.ReadByte(); err != io.EOF {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("closed after %v", took)
	}
}

// A head that does not go on is given up by net/http, in its time, also behind answers of direct's.
func TestSlowHeadBehindDirect(t *testing.T) {
	s := stand(t, time.Minute, func(http.ResponseWriter, *http.Request) {})
	for _, slow := range []int{0, 1} { // requests that are slow, but in time: net/http answers them
		c, in := s.dial(t)
		say(t, c, plainGet)
		answer(t, in)
		for range slow {
			say(t, c, plainGet[:10])
			time.Sleep(100 * time.Millisecond)
			say(t, c, plainGet[10:])
			answer(t, in)
		}
		say(t, c, plainGet[:10])
		begin := time.Now()
		_, _ = io.Copy(io.Discard, in)
		if took := time.Since(begin); took < 100*time.Millisecond || took > 3*time.Second {
			t.Errorf("behind %d: given up after %v", slow, took)
		}
	}
}

// Requests that direct is not for go to net/http, and back; those that come together, in their order.
func TestTakingTurnsWithNetHTTP(t *testing.T) {
	var byDirect atomic.Int64
	s := stand(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		if _, is := w.(*reply); is {
			byDirect.Add(1)
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+r.URL.Path+string(body))
	})
	c, in := s.dial(t)
	get := func(n int) string { return "GET /" + strconv.Itoa(n) + " HTTP/1.1\r\nHost: x\r\n\r\n" }
	const post = "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
	for range 3 {
		say(t, c, get(1))
		say(t, c, post)
		say(t, c, get(2)+get(3)+post+get(4)+"GET /5 HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, x\r\n\r\n"+get(6))
		for _, want := range []string{"GET/1", "POST/pabc", "GET/2", "GET/3", "POST/pabc", "GET/4", "GET/5", "GET/6"} {
			if got := answer(t, in); got != want {
				t.Fatalf("%q, want %q", got, want)
			}
		}
	}
	if byDirect.Load() == 0 {
		t.Error("direct answered nothing")
	}
}

// What net/http reads as a body is no request, however its length is written.
func TestBodiesAreNoRequests(t *testing.T) {
	const inside = "GET /smuggled HTTP/1.1\r\nHost: y\r\n\r\n"
	length := strconv.Itoa(len(inside))
	for _, line := range []string{
		"Content-Length: " + length, "Content-Length: 00000000000000000000" + length, "Content-Length: 1000000000000000000",
		"Content-Length:" + strings.Repeat(" ", deciding) + length, "Content-Length: " + length + strings.Repeat(" ", deciding),
		"Content-Length: +" + length, "Content-Length: " + length + "\r\nContent-Length: " + length, "Content-Length: " + length + ", " + length,
		"Transfer-Encoding: chunked", "Transfer-Encoding:" + strings.Repeat(" ", deciding) + "chunked", "X: y",
	} {
		s := stand(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(io.LimitReader(r.Body, int64(len(inside))))
			_, _ = io.WriteString(w, r.URL.Path+":"+string(b))
		})
		c, in := s.dial(t)
		say(t, c, plainGet)
		answer(t, in)
		say(t, c, "POST /post HTTP/1.1\r\nHost: x\r\n"+line+"\r\n\r\n")
		time.Sleep(20 * time.Millisecond)
		say(t, c, inside)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(res.Body); strings.HasPrefix(string(b), "/smuggled") {
			t.Errorf("%q: what was its body was answered first", line)
		}
	}
}

// A handler that ends its goroutine ends its connection.
func TestDirectHandlerThatDoesNotReturn(t *testing.T) {
	s := stand(t, time.Minute, func(http.ResponseWriter, *http.Request) { runtime.Goexit() })
	c, in := s.dial(t)
	say(t, c, plainGet)
	if _, err := in.ReadByte(); err != io.EOF {
		t.Error(err)
	}
	if n := s.direct.running.Load(); n != 0 {
		t.Errorf("%d answers are running", n)
	}
}

// What panics is told of, once, and its connection ends without looking as if the answer were whole.
func TestDirectPanics(t *testing.T) {
	for _, tt := range []struct {
		fault any
		tells bool
	}{{errors.New("the fault"), true}, {http.ErrAbortHandler, false}} {
		s := stand(t, time.Minute, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("a part"))
			_ = http.NewResponseController(w).Flush()
			panic(tt.fault)
		})
		c, in := s.dial(t)
		say(t, c, plainGet)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); string(body) != "a part" || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q, %v", body, err)
		}
		if said := strings.Count(s.log.String(), "the fault"); (said == 1) != tt.tells {
			t.Errorf("%v: the log says\n%s", tt.fault, s.log)
		}
	}
}

// A stop closes connections that wait at once, however young they are, lets answers end, and closes their
// connections behind them.
func TestStopBehindDirect(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := stand(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(entered)
			<-leave
		}
		_, _ = io.WriteString(w, "done")
	})
	c, in := s.dial(t)
	say(t, c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n") // to net/http it is idle behind that
	answer(t, in)
	idle, idleIn := s.dial(t)
	say(t, idle, plainGet)
	answer(t, idleIn)
	say(t, c, "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
	<-entered
	stopped := make(chan error, 1)
	begin := time.Now()
	go func() { stopped <- s.stop(t.Context()) }()
	if _, err := idleIn.ReadByte(); err != io.EOF {
		t.Error(err)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("the idle connection was closed after %v", took)
	}
	time.Sleep(600 * time.Millisecond) // until net/http has looked for idle connections
	select {
	case err := <-stopped:
		t.Fatal("stopped while a request was answered:", err)
	default:
	}
	close(leave)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(res.Body); string(body) != "done" || err != nil || !res.Close {
		t.Errorf("%q, %v, closes: %t", body, err, res.Close)
	}
	if _, err := in.ReadByte(); err != io.EOF {
		t.Error("the connection goes on:", err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// No handler begins once a stop has come to its end, or with a context that has ended.
func TestStopAndRequestsAtTheSameTime(t *testing.T) {
	for round := range 20 {
		var stopped atomic.Bool
		var late, ended atomic.Int64
		s := stand(t, time.Minute, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if stopped.Load() {
				late.Add(1)
			}
			if r.Context().Err() != nil {
				ended.Add(1)
			}
		})
		var all []net.Conn
		for range 20 {
			c, in := s.dial(t)
			say(t, c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na") // net/http is to wait for the next
			answer(t, in)
			all = append(all, c)
		}
		var both sync.WaitGroup
		both.Go(func() {
			for _, c := range all {
				_, _ = io.WriteString(c, plainGet)
			}
		})
		both.Go(func() {
			time.Sleep(time.Duration(round%10) * 20 * time.Microsecond)
			if err := s.stop(t.Context()); err != nil {
				t.Error(err)
			}
			stopped.Store(true)
		})
		both.Wait()
		time.Sleep(5 * time.Millisecond)
		if late.Load() != 0 || ended.Load() != 0 {
			t.Fatalf("round %d: %d handlers began behind the stop, %d with an ended context", round, late.Load(), ended.Load())
		}
	}
}

// A stop that runs out of time cuts what direct answers, also what writes to a client that takes nothing.
func TestStopCutsDirect(t *testing.T) {
	entered := make(chan struct{})
	ended := make(chan struct{})
	s := stand(t, time.Minute, func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		close(entered)
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	c, _ := s.dial(t)
	say(t, c, plainGet)
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.stop(ctx); err == nil {
		t.Error("a cut is no fault")
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the handler goes on")
	}
}
