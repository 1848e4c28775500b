package httpserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// visit is a request that a handler has been given.
type visit struct {
	r    *http.Request
	conn *conn
	end  chan struct{} // closed when it is to be answered
}

// visited is a server whose handler hands its requests to the test and answers when it is told to.
type visited struct {
	address    string
	server     *http.Server
	departures *departures // nil: net/http finds out by itself
	direct     *direct     // nil: net/http answers all
	visits     chan *visit
	read       atomic.Int64 // bytes
	short      atomic.Int64 // reads of one byte, which wait for a client to leave
}

// readsCounted counts what is read from the system.
type readsCounted struct {
	*net.TCPConn
	of *visited
}

func (c readsCounted) Read(p []byte) (int, error) {
	if len(p) == 1 {
		c.of.short.Add(1)
	}
	n, err := c.TCPConn.Read(p)
	c.of.read.Add(int64(n))
	return n, err
}

type visitedListener struct {
	net.Listener
	of *visited
}

func (l visitedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(readsCounted{c.(*net.TCPConn), l.of}, l.of.departures, l.of.direct), nil
}

// answerer is who answers, and finds out that a client leaves.
type answerer string

const (
	alone  answerer = "net/http"
	told   answerer = "net/http, told of leaving"
	before answerer = "direct, and net/http what is left"
)

func visitable(t *testing.T, by answerer) *visited {
	t.Helper()
	v := &visited{visits: make(chan *visit)}
	if by != alone {
		var err error
		if v.departures, err = watchDepartures(); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v.address = opened.Addr().String()
	stop := make(chan struct{})
	v.server = &http.Server{
		ConnContext:    withConn,
		ErrorLog:       log.New(io.Discard, "", 0),
		MaxHeaderBytes: 8 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/at-once" {
				return
			}
			is := &visit{r, connOf(r), make(chan struct{})}
			select {
			case v.visits <- is:
			case <-stop:
				return
			}
			select {
			case <-is.end:
			case <-stop:
			}
		}),
	}
	if by == before {
		v.direct = newDirect(v.server, slog.New(slog.DiscardHandler))
		v.direct.departures = v.departures
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = v.server.Serve(visitedListener{opened, v}) })
	t.Cleanup(func() {
		close(stop)
		v.close(t)
		serving.Wait()
		if v.departures != nil {
			soon(t, "every connection is forgotten", func() bool {
				v.departures.mu.Lock()
				defer v.departures.mu.Unlock()
				return len(v.departures.of) == 0
			})
			v.departures.stop()
		}
	})
	return v
}

// close closes the server and its connections.
func (v *visited) close(t *testing.T) {
	t.Helper()
	if err := v.server.Close(); err != nil {
		t.Error(err)
	}
	if v.direct != nil {
		v.direct.cut()
	}
}

func (v *visited) dial(t *testing.T) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", v.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

func (v *visited) next(t *testing.T) *visit {
	t.Helper()
	select {
	case is := <-v.visits:
		return is
	case <-time.After(10 * time.Second):
		t.Fatal("no request came")
		return nil
	}
}

func say(t *testing.T, c net.Conn, what string) {
	t.Helper()
	if _, err := io.WriteString(c, what); err != nil {
		t.Fatal(err)
	}
}

func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so: %s", what)
		}
	}
}

func ended(t *testing.T, r *http.Request) {
	t.Helper()
	select {
	case <-r.Context().Done():
		if err := r.Context().Err(); err != context.Canceled {
			t.Errorf("the context ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the client left, and the request's context goes on")
	}
}

const (
	visitGet  = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
	visitPost = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"
)

// A request whose client leaves ends, whoever finds out: the ways of leaving, each also behind an earlier request.
func TestLeavingEndsTheRequest(t *testing.T) {
	leave := map[string]func(*net.TCPConn) error{
		"closes":           func(c *net.TCPConn) error { return c.Close() },
		"closes its side":  func(c *net.TCPConn) error { return c.CloseWrite() },
		"resets":           func(c *net.TCPConn) error { _ = c.SetLinger(0); return c.Close() },
		"in two movements": func(c *net.TCPConn) error { _ = c.CloseWrite(); return c.Close() },
	}
	for _, by := range []answerer{alone, told, before} {
		v := visitable(t, by)
		for name, leaves := range leave {
			for _, earlier := range []int{0, 2} {
				t.Run(fmt.Sprintf("%s, %s, %d before", by, name, earlier), func(t *testing.T) {
					c := v.dial(t)
					answers := bufio.NewReader(c)
					for range earlier {
						say(t, c, visitGet)
						close(v.next(t).end)
						if res, err := http.ReadResponse(answers, nil); err != nil || res.StatusCode != http.StatusOK {
							t.Fatal(res, err)
						}
					}
					say(t, c, visitGet)
					is := v.next(t)
					defer close(is.end)
					if err := is.r.Context().Err(); err != nil {
						t.Fatal("ended before the client left")
					}
					if err := leaves(c); err != nil {
						t.Fatal(err)
					}
					ended(t, is.r)
				})
			}
		}
	}
}

// While a request is answered nobody waits for the client, so that nobody has to be woken when it is.
func TestNobodyReadsWhileARequestIsAnswered(t *testing.T) {
	for _, by := range []answerer{alone, told, before} {
		v := visitable(t, by)
		c := v.dial(t)
		answers := bufio.NewReader(c)
		for range 3 {
			for _, request := range []string{visitGet, visitPost + "hello"} {
				say(t, c, request)
				is := v.next(t)
				if _, err := io.ReadAll(is.r.Body); err != nil {
					t.Fatal(err)
				}
				close(is.end)
				if _, err := http.ReadResponse(answers, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := v.short.Load(); (n == 0) != (by != alone) {
			t.Errorf("%s: %d reads waited for the client to leave", by, n)
		}
	}
}

// What a client sent before it closed its side is read before it counts as gone.
func TestWhatWasSentBeforeLeavingIsRead(t *testing.T) {
	for _, by := range []answerer{told, before} {
		t.Run(string(by), func(t *testing.T) { whatWasSentIsRead(t, visitable(t, by)) })
	}
}

func whatWasSentIsRead(t *testing.T, v *visited) {
	t.Run("a body", func(t *testing.T) {
		c := v.dial(t)
		say(t, c, visitPost)
		is := v.next(t)
		defer close(is.end)
		say(t, c, "hello")
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		soon(t, "it is known that the client closed its side", is.conn.attention.gone.Load)
		if is.r.Context().Err() != nil {
			t.Error("ended before its body was read")
		}
		if body, err := io.ReadAll(is.r.Body); err != nil || string(body) != "hello" {
			t.Errorf("read %q, %v", body, err)
		}
		ended(t, is.r)
	})
	t.Run("the request itself", func(t *testing.T) {
		c := v.dial(t)
		say(t, c, visitGet)
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		is := v.next(t)
		defer close(is.end)
		ended(t, is.r)
	})
	t.Run("another request", func(t *testing.T) {
		c := v.dial(t)
		say(t, c, visitGet)
		first := v.next(t)
		soon(t, "the first is being answered", func() bool { return isAnswering(first.conn.attention.turns.Load()) })
		say(t, c, visitGet)
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		soon(t, "it is known that the client closed its side", first.conn.attention.gone.Load)
		if first.r.Context().Err() != nil {
			t.Error("the first ended while the second had not been read")
		}
		close(first.end)
		second := v.next(t)
		ended(t, second.r)
		close(second.end)
		answers := bufio.NewReader(c)
		for i := range 2 {
			if res, err := http.ReadResponse(answers, nil); err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("answer %d: %v, %v", i+1, res, err)
			}
		}
	})
	t.Run("requests that come together", func(t *testing.T) {
		c := v.dial(t)
		say(t, c, strings.Repeat(visitGet, 3))
		answers := bufio.NewReader(c)
		for range 3 {
			is := v.next(t)
			if is.r.Context().Err() != nil {
				t.Error("ended, and the client is there")
			}
			close(is.end)
			if _, err := http.ReadResponse(answers, nil); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestClosingTheServerEndsRequests(t *testing.T) {
	for _, by := range []answerer{told, before} {
		v := visitable(t, by)
		say(t, v.dial(t), visitGet)
		is := v.next(t)
		defer close(is.end)
		soon(t, "it is being answered", func() bool { return isAnswering(is.conn.attention.turns.Load()) })
		v.close(t)
		ended(t, is.r)
	}
}

// A head that is too long gets the same answer wherever it is cut: where all but a byte of what may come was read,
// net/http asks for that byte.
func TestShortReadsOfHeads(t *testing.T) {
	byItself, others := visitable(t, alone), []*visited{visitable(t, told), visitable(t, before)}
	const limit = 12 << 10 // MaxHeaderBytes, and 4 KiB that net/http adds
	status := func(v *visited, length, cut int) string {
		c := v.dial(t)
		head := "GET /at-once HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Long: "
		head += strings.Repeat("a", length-len(head)-4) + "\r\n\r\n"
		before := v.read.Load()
		say(t, c, head[:cut])
		soon(t, "all of it was read", func() bool { return v.read.Load()-before == int64(cut) })
		say(t, c, head[cut:])
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			t.Error(err)
		}
		return line
	}
	statuses := map[string]int{}
	for _, length := range []int{limit - 1, limit, limit + 1} {
		for cut := limit - 3; cut < limit; cut++ {
			want := status(byItself, length, cut)
			for _, v := range others {
				if got := status(v, length, cut); got != want {
					t.Errorf("a head of %d bytes, cut at %d: %q, want %q", length, cut, got, want)
				}
			}
			statuses[want]++
		}
	}
	if n := others[0].short.Load(); n == 0 || len(statuses) != 2 {
		t.Errorf("%d short reads, answers %v", n, statuses)
	}
}

// Clients that come and go as they like, many at a time, find every request answered that they wait for.
func TestComingAndGoing(t *testing.T) {
	for _, by := range []answerer{told, before} {
		t.Run(string(by), func(t *testing.T) { comeAndGo(t, visitable(t, by)) })
	}
}

func comeAndGo(t *testing.T, v *visited) {
	stop := make(chan struct{})
	var answering, clients sync.WaitGroup
	answering.Go(func() {
		for {
			select {
			case is := <-v.visits:
				answering.Go(func() {
					select {
					case <-is.r.Context().Done():
					case <-time.After(rand.N(2 * time.Millisecond)):
					}
					close(is.end)
				})
			case <-stop:
				return
			}
		}
	})
	for range 16 {
		clients.Go(func() {
			for range 50 {
				c, err := net.Dial("tcp", v.address)
				if err != nil {
					t.Error(err)
					return
				}
				_ = c.SetDeadline(time.Now().Add(10 * time.Second))
				answers := bufio.NewReader(c)
				for range rand.N(4) {
					_, err := io.WriteString(c, visitGet)
					if err == nil {
						_, err = http.ReadResponse(answers, nil)
					}
					if err != nil {
						t.Error(err)
					}
				}
				if rand.N(2) == 0 {
					_, _ = io.WriteString(c, visitGet) // and is not there for the answer
				}
				_ = c.Close()
			}
		})
	}
	clients.Wait()
	close(stop)
	answering.Wait()
}
