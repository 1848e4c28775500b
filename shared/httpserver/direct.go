package httpserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
)

// direct answers requests of HTTP/1.1 that have no body and came in one piece, which nearly all have, while net/http
// waits for the next request: within the Read by which it does. net/http itself would begin a goroutine for each
// request, to see the client leave, and that wakes a thread for each, which then often goes on with the answer on
// another processor; here [departures] tells.
//
// Everything else goes on to net/http, as it came: bodies, HTTP/1.0 and HTTP/2, Upgrade and Expect, connections that
// are to be closed, and whatever is not plainly right, which it refuses.
type direct struct {
	handler    http.Handler
	departures *departures
	// How long the next request may be in coming, and its head, as http.Server has them.
	idleTimeout, headTimeout time.Duration
	log                      *slog.Logger

	running  atomic.Int64 // answers
	stopping atomic.Bool
	parsers  sync.Pool // of *parser
	buffers  sync.Pool // of *[]byte, for answers
}

// newDirect returns what answers before a server, from whose connections' states it takes whether it may.
func newDirect(server *http.Server, log *slog.Logger) *direct {
	server.ConnState = func(nc net.Conn, state http.ConnState) {
		nc.(*conn).taken.Store(state != http.StateNew && state != http.StateIdle)
	}
	return &direct{
		handler: server.Handler, log: log,
		idleTimeout: server.IdleTimeout, headTimeout: server.ReadHeaderTimeout,
		parsers: sync.Pool{New: func() any { return newParser() }},
		buffers: sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }},
	}
}

// stage is where a connection stands between direct and net/http.
type stage = int32

const (
	elsewhere stage = iota // with net/http
	waiting                // for the next request
	answering
	ending // it is answered, and then closed
)

// serve answers what it is for: of the n bytes that were read into p, and of what comes after them. It returns as
// Read does, with what it is not for.
func (d *direct) serve(c *conn, p []byte, n int) (int, error) {
	var until time.Time // the read deadline, if it is ours
	for {
		head := plainHead(p[:n])
		if head == 0 {
			break
		}
		r, err := d.parse(p[:head])
		if err != nil {
			break // net/http says what is wrong with it
		}
		was := c.stage.Load()
		d.running.Add(1) // before stopping is looked at: either that is seen here, or this by wait
		if was > waiting || !c.stage.CompareAndSwap(was, answering) {
			d.running.Add(-1)
			return 0, net.ErrClosed
		}
		if d.stopping.Load() {
			d.running.Add(-1)
			if !c.stage.CompareAndSwap(answering, was) {
				return 0, io.EOF
			}
			break
		}
		stays := d.answer(c, r, n == head)
		if !c.stage.CompareAndSwap(answering, waiting) || !stays || d.stopping.Load() {
			return 0, io.EOF
		}
		if n = copy(p, p[head:n]); n > 0 {
			continue
		}
		if now := time.Now(); d.idleTimeout > 0 && until.Sub(now) < d.idleTimeout {
			until = now.Add(d.idleTimeout + d.idleTimeout/4) // so that not each request sets it
			if err := c.transport.SetReadDeadline(until); err != nil {
				return 0, err
			}
		}
		if n, err = c.transport.Read(p); err != nil {
			return n, err
		}
	}
	if c.stage.CompareAndSwap(waiting, elsewhere) && d.headTimeout > 0 {
		return n, c.transport.SetReadDeadline(time.Now().Add(d.headTimeout))
	}
	return n, nil
}

// answer has the handler answer a request, which is running, and tells whether the connection may go on. Alone says
// that nothing was sent behind the request: then its context ends when the client leaves.
func (d *direct) answer(c *conn, r *http.Request, alone bool) (stays bool) {
	defer d.running.Add(-1)
	ctx, cancel := context.WithCancel(c.ctx)
	w := &reply{direct: d, conn: c, request: r, cancel: cancel, header: http.Header{}, length: -1}
	returned := false
	defer func() {
		cancel()
		w.free()
		if returned {
			return
		}
		c.stage.CompareAndSwap(answering, ending) // also where the goroutine ends, and nobody else closes it
		if fault := recover(); fault != nil {
			if err, ok := fault.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				d.log.LogAttrs(context.Background(), slog.LevelError, "http server: panic serving",
					slog.Any("panic", fault), slog.String("stack", string(debug.Stack())))
			}
		}
	}()
	if alone {
		c.attention.begin(c.nothingLeft)
		defer c.attention.done()
	}
	r.RemoteAddr = c.remote
	d.handler.ServeHTTP(w, r.WithContext(ctx))
	stays = w.finish()
	returned = true
	return stays
}

// stop has answers that are running be the last of their connections, and closes those that wait.
func (d *direct) stop() {
	d.stopping.Store(true)
	for _, c := range d.departures.conns() {
		if c.stage.CompareAndSwap(waiting, ending) {
			_ = c.transport.Close() // it was idle
		}
	}
}

// wait waits for the answers that are running.
func (d *direct) wait(ctx context.Context) error {
	for d.running.Load() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// cut closes the connections of the answers that are running.
func (d *direct) cut() {
	for _, c := range d.departures.conns() {
		if c.stage.CompareAndSwap(answering, ending) || c.stage.Load() == ending {
			_ = c.Close() // who is cut gets no more
		}
	}
}

// parser is net/http's, for heads that are there as a whole.
type parser struct {
	head *bytes.Reader
	in   *bufio.Reader
}

func newParser() *parser {
	head := bytes.NewReader(nil)
	return &parser{head, bufio.NewReaderSize(head, 4<<10)}
}

func (d *direct) parse(head []byte) (*http.Request, error) {
	p := d.parsers.Get().(*parser)
	defer d.parsers.Put(p)
	p.head.Reset(head)
	p.in.Reset(p.head)
	r, err := http.ReadRequest(p.in)
	p.head.Reset(nil)
	return r, err
}

// plainHead returns the length of the head that b begins with, if it is whole and all of its request, and plainly
// right (RFC 9112, sections 3 to 5); else 0. What it lets through is not for it to interpret: it is parsed by net/http
// after that.
func plainHead(b []byte) int {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return 0
	}
	line, fields, _ := bytes.Cut(b[:end+2], []byte("\r\n"))
	if !plainRequestLine(line) {
		return 0
	}
	hosts := 0
	for len(fields) > 0 {
		line, fields, _ = bytes.Cut(fields, []byte("\r\n"))
		name, value, ok := bytes.Cut(line, []byte{':'})
		if !ok || len(name) == 0 || !all(name, inName) || !all(value, inValue) {
			return 0
		}
		switch len(name) {
		case len("Host"):
			if equalFold(name, "host") {
				hosts++
				if value = bytes.Trim(value, " \t"); len(value) == 0 || !httpguts.ValidHostHeader(string(value)) {
					return 0
				}
			}
		case len("Expect"):
			if equalFold(name, "expect") {
				return 0
			}
		case len("Upgrade"): // and Trailer
			if equalFold(name, "upgrade") || equalFold(name, "trailer") {
				return 0
			}
		case len("Connection"):
			if equalFold(name, "connection") && !equalFold(bytes.Trim(value, " \t"), "keep-alive") {
				return 0
			}
		case len("Content-Length"):
			if equalFold(name, "content-length") {
				return 0
			}
		case len("Transfer-Encoding"):
			if equalFold(name, "transfer-encoding") {
				return 0
			}
		}
	}
	if hosts != 1 {
		return 0
	}
	return end + 4
}

// plainRequestLine tells whether a request line asks for a path (origin-form), in HTTP/1.1.
func plainRequestLine(line []byte) bool {
	const version = " HTTP/1.1"
	line, ok := bytes.CutSuffix(line, []byte(version))
	if !ok {
		return false
	}
	method, target, ok := bytes.Cut(line, []byte{' '})
	return ok && len(method) > 0 && all(method, inMethod) && len(target) > 0 && target[0] == '/' && all(target, inTarget)
}

// class is a set of the kinds of places where a byte may stand.
type class byte

const (
	inMethod class = 1 << iota
	inTarget
	inName
	inValue
)

// classes is stricter than the RFCs: of what is rare net/http finds out itself.
var classes = func() (of [256]class) {
	for b := range of {
		c := byte(b)
		upper, lower, digit := 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9'
		if upper {
			of[b] |= inMethod
		}
		if upper || lower || digit || c == '-' || c == '_' {
			of[b] |= inName
		}
		if '!' <= c && c <= '~' {
			of[b] |= inTarget
		}
		if ' ' <= c && c <= '~' || c == '\t' {
			of[b] |= inValue
		}
	}
	return of
}()

func all(b []byte, may class) bool {
	for _, c := range b {
		if classes[c]&may == 0 {
			return false
		}
	}
	return true
}
