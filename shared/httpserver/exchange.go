package httpserver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/lectern-dev/lectern/shared/httpapi"
)

// exchange is one request and its answer: the outermost http.ResponseWriter, which counts what goes
// out, gives the client time to take it, and can be severed, after which nothing goes out any more.
// It is not pooled, as what a handler started may hold the request's context, and with it the Info,
// for longer than the request.
type exchange struct {
	http.ResponseWriter
	chain *chain
	conn  *conn // nil when other requests share it
	info  httpapi.Info
	log   requestLog

	request *http.Request
	handler http.Handler
	body    *patientBody    // nil when the request has none
	ctx     context.Context // the request's, with its span
	start   time.Time
	coding  string // what a GET's body would be compressed with

	status   int // 0 until the answer has begun
	bytes    int64
	extended time.Time // when the client was last given time to write to
	severed  bool      // nothing may follow: what has gone out is not the whole
	aborted  bool      // the client saw the connection end
}

// errSevered is what a write gets that comes after the handler gave up.
var errSevered = errors.New("the answer was given up")

// extendEvery is how often the client's time is extended at most within an answer: the call costs more
// than looking at the clock, and time-outs are in seconds.
const extendEvery = time.Second

// WriteHeader begins the answer.
func (x *exchange) WriteHeader(status int) {
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		x.ResponseWriter.WriteHeader(status)
		return
	}
	if x.status != 0 || x.severed {
		return
	}
	x.status = status
	// What follows a chunked body may be a request only to us, where somebody on the way went by a
	// Content-Length beside it: RFC 9112, section 6.1, has the connection end.
	if x.chain.draining.Load() || x.chain.bodiless && len(x.request.TransferEncoding) > 0 {
		x.Header()["Connection"] = x.chain.headers.connectionClose
	}
	if x.coding != "" && x.request.Method == http.MethodHead {
		x.describeCoded()
	}
	x.extend(0)
	x.body.leave()
	x.ResponseWriter.WriteHeader(status)
}

// describeCoded gives the answer to HEAD the headers that the compressed body of GET would have, whose
// length nobody knows beforehand (RFC 9110, section 8.6: Content-Length must be GET's or absent).
func (x *exchange) describeCoded() {
	h := x.Header()
	length, err := strconv.Atoi(h.Get("Content-Length"))
	if (err == nil && length < compressFrom) || x.status != http.StatusOK ||
		h.Get("Content-Encoding") != "" || !compressible(h.Get("Content-Type")) {
		return
	}
	h.Set("Content-Encoding", x.coding)
	h.Del("Content-Length")
}

// morsel is how much of a body a client takes within WRITE_TIMEOUT at least: with 30 s, anything faster
// than 9 kB/s is served to its end.
const morsel = 256 << 10

// Write sends a part of the body.
func (x *exchange) Write(b []byte) (n int, err error) {
	for len(b) > morsel && err == nil {
		var m int
		m, err = x.write(b[:morsel])
		n, b = n+m, b[m:]
	}
	if err != nil {
		return n, err
	}
	m, err := x.write(b)
	return n + m, err
}

func (x *exchange) write(b []byte) (int, error) {
	if x.severed {
		return 0, errSevered
	}
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	} else {
		x.extend(extendEvery)
	}
	n, err := x.ResponseWriter.Write(b)
	x.bytes += int64(n)
	return n, err
}

// extend gives the client its time to take what comes next, or up to a quarter more, unless it got it less
// than sparing ago. A limit on the whole (http.Server's WriteTimeout) would count from the request's headers
// on, and so end long uploads and long lists.
func (x *exchange) extend(sparing time.Duration) {
	now := time.Now()
	stall := x.chain.config.WriteTimeout
	if now.Sub(x.extended) < min(sparing, stall/4) {
		return
	}
	x.extended = now
	if x.conn != nil {
		if x.conn.goesOn(now, stall) {
			return
		}
		stall += stall / 4
	}
	if w, ok := x.ResponseWriter.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = w.SetWriteDeadline(now.Add(stall)) // a connection that is gone says so on Write
	}
}

// FlushError sends what is buffered.
func (x *exchange) FlushError() error {
	if x.severed {
		return errSevered
	}
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	return http.NewResponseController(x.ResponseWriter).Flush()
}

// Flush sends what is buffered, for callers that take no error.
func (x *exchange) Flush() { _ = x.FlushError() }

// Hijack hands the connection over; the exchange is out of it from then on.
func (x *exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(x.ResponseWriter).Hijack()
	if err == nil {
		x.severed = true
	}
	return conn, rw, err
}

// Unwrap gives http.ResponseController what this type does not do itself.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// baseURL is the request's Info.BaseURL.
func (x *exchange) baseURL() string { return x.chain.origin.baseURL(x.request) }

// requestLog adds the request's id to each line.
type requestLog struct {
	slog.Handler
	id string
}

// Handle writes one line.
func (l *requestLog) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(slog.String("request_id", l.id))
	return l.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler that adds attrs to each line.
func (l *requestLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &requestLog{Handler: l.Handler.WithAttrs(attrs), id: l.id}
}

// WithGroup returns a handler that puts what follows into a group.
func (l *requestLog) WithGroup(name string) slog.Handler {
	return &requestLog{Handler: l.Handler.WithGroup(name), id: l.id}
}

// patientBody is a request's body whose sender may not stall. The limit is on each read and not on the
// whole, so that a long upload may take as long as it goes on.
type patientBody struct {
	io.ReadCloser
	deadline interface{ SetReadDeadline(time.Time) error }
	stall    time.Duration
	ended    atomic.Bool // read to its end, perhaps by another goroutine than the handler's
}

// leave bounds what the server does by itself before an answer's headers and after the handler: it reads
// on to where the next request begins, for as long as the client likes.
func (b *patientBody) leave() {
	if b != nil && !b.ended.Load() {
		_ = b.deadline.SetReadDeadline(time.Now().Add(b.stall)) // a connection that is gone needs none
	}
}

// Read reads within the limit.
func (b *patientBody) Read(p []byte) (int, error) {
	_ = b.deadline.SetReadDeadline(time.Now().Add(b.stall)) // a connection that is gone says so on Read
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended.Store(true)
		// The server goes on reading to see the client leave; that it has no more to say is no fault.
		_ = b.deadline.SetReadDeadline(time.Time{})
	}
	return n, err
}
