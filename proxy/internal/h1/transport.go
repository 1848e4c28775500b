// Package h1 sends requests over HTTP/1.1 and reads their answers in the goroutine that asks, on connections
// that it keeps between requests. net/http's transport has two goroutines for each connection, and hands every
// request and every answer from one to the other: on few processors each hand-over is a wait for a thread to
// wake. How messages are written and read is net/http's own; what is owned here is when, and on which
// connection.
//
// It refuses what can not be done by one goroutine: bodies that are long in coming, which an answer may
// overtake, and a switch of protocols. A connection is used again only when the answer before was read to its
// end, framed in the one way that all readers understand alike, and nothing came behind it.
package h1

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Options is what a Transport is made of.
type Options struct {
	// Dial connects to an address, host:port, of a scheme, http or https. The fault that it returns is
	// RoundTrip's. Required.
	Dial func(ctx context.Context, scheme, address string) (*Conn, error)
	// MaxHeaderBytes bounds the headers of an answer, those of interim ones included. Required.
	MaxHeaderBytes int64
	// MaxIdle and MaxIdlePerHost bound the connections that are kept between requests, in all and by scheme and
	// address. Required.
	MaxIdle, MaxIdlePerHost int
	// IdleTimeout is how long one is kept. Required.
	IdleTimeout time.Duration
}

// Transport is an http.RoundTripper for the requests that [Takes] tells of. Of an httptrace.ClientTrace it calls
// GotConn, WroteHeaders and the like when the request is about to be sent, WroteRequest, and Got1xxResponse.
// The connection's TLS state is not in the answer.
type Transport struct {
	o       Options
	idle    idle
	buffers sync.Pool // of *bytes.Buffer: requests
	readers sync.Pool // of *bufio.Reader: answers
}

// New returns a Transport.
func New(o Options) *Transport {
	t := &Transport{o: o}
	t.idle.init(o.MaxIdlePerHost, o.MaxIdle, o.IdleTimeout)
	t.buffers.New = func() any { return new(bytes.Buffer) }
	t.readers.New = func() any { return newReader() }
	return t
}

// Close closes the connections that no request uses, and keeps none from now on.
func (t *Transport) Close() { t.idle.close() }

// Held is a body that is there as a whole: reading it waits for nobody.
type Held struct{ io.ReadCloser }

// maxHeld bounds a body that is sent, in bytes. What the system takes from one write is more, so that nobody
// waits for a target that answers before it reads.
const maxHeld = 8 << 10

// Takes tells whether a request is one for a Transport: it has no body, or a small one that is [Held] and can be
// had again.
func Takes(r *http.Request) bool {
	if r.Method == http.MethodConnect || len(r.Header["Upgrade"]) > 0 || len(r.Header["Expect"]) > 0 || len(r.Trailer) > 0 {
		return false
	}
	if r.Body == nil || r.Body == http.NoBody {
		return true
	}
	_, held := r.Body.(Held)
	return held && r.GetBody != nil && r.ContentLength > 0 && r.ContentLength <= maxHeld
}

// The faults of requests and answers.
var (
	errRequest  = errors.New("h1: not a request that can be sent")
	errSwitched = errors.New("h1: the answer switches protocols, which nobody asked for")
	errHeaders  = errors.New("h1: the headers of the answer are over their limit")
)

// RoundTrip sends a request and returns its answer, whose body is to be closed. It goes on a connection that was
// kept, if there is one; should that turn out to be closed before a byte of an answer has come, the request is
// sent once more on a new one, when it is known that none of it was sent or that it may be repeated (RFC 9110,
// section 9.2.2). When the request's context ends, so does the connection.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	to, err := check(r)
	if err != nil {
		closeBody(r)
		return nil, err
	}
	ctx := r.Context()
	trace := httptrace.ContextClientTrace(ctx)
	if trace == nil {
		trace = &httptrace.ClientTrace{}
	}
	if c := t.idle.take(to); c != nil {
		res, err := t.exchange(ctx, trace, c, r)
		if err == nil {
			return res, nil
		}
		lost, ok := errors.AsType[*lostError](err)
		if !ok || lost.sent && !repeatable(r) {
			return nil, err
		}
		if r, err = afresh(r); err != nil {
			return nil, err
		}
	}
	dialled, err := t.o.Dial(ctx, to.scheme, to.address)
	if err != nil {
		closeBody(r)
		return nil, err
	}
	return t.exchange(ctx, trace, &conn{Conn: dialled, place: to}, r)
}

// check tells where a request goes, or why it can not: net/http's transport refuses the same.
func check(r *http.Request) (place, error) {
	switch {
	case r.URL == nil || r.Header == nil || r.URL.Host == "":
		return place{}, fmt.Errorf("%w: it has no URL, host or headers", errRequest)
	case !Takes(r):
		return place{}, fmt.Errorf("%w: its body may be long in coming, or it wants more than an answer", errRequest)
	case r.Method != "" && !httpguts.ValidHeaderFieldName(r.Method): // a method is a token, as a header's name is
		return place{}, fmt.Errorf("%w: its method is no token", errRequest)
	}
	for name, values := range r.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return place{}, fmt.Errorf("%w: a header's name is no token", errRequest)
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return place{}, fmt.Errorf("%w: a header's value has a control character", errRequest)
			}
		}
	}
	port := r.URL.Port()
	switch r.URL.Scheme {
	case "http":
		if port == "" {
			port = "80"
		}
	case "https":
		if port == "" {
			port = "443"
		}
	default:
		return place{}, fmt.Errorf("%w: its scheme is neither http nor https", errRequest)
	}
	return place{r.URL.Scheme, net.JoinHostPort(r.URL.Hostname(), port)}, nil
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // it was not read, and has nothing to tell
	}
}

// repeatable tells whether a request may be sent again although the target may have acted on it, by the rules of
// net/http's transport.
func repeatable(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return len(r.Header["Idempotency-Key"]) > 0 || len(r.Header["X-Idempotency-Key"]) > 0
}

// afresh returns the request with its body at the beginning.
func afresh(r *http.Request) (*http.Request, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	again := *r
	again.Body = body
	return &again, nil
}

// lostError is that a connection ended before a byte of an answer came.
type lostError struct {
	err  error
	sent bool // a part of the request may have reached the target
}

// Error is the reason.
func (e *lostError) Error() string {
	return "h1: the connection ended without an answer: " + e.err.Error()
}

// Unwrap returns the reason.
func (e *lostError) Unwrap() error { return e.err }

// exchange sends a request on a connection, which is closed unless an answer is returned.
func (t *Transport) exchange(ctx context.Context, trace *httptrace.ClientTrace, c *conn, r *http.Request) (*http.Response, error) {
	if trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Conn: c.Conn, Reused: c.used, WasIdle: c.used})
	}
	c.begin(ctx, t.o.MaxHeaderBytes)
	res, err := t.sendAndReceive(trace, c, r)
	if err == nil {
		return res, nil
	}
	c.abandon()
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause // the connection ended for that
	}
	return nil, err
}

func (t *Transport) sendAndReceive(trace *httptrace.ClientTrace, c *conn, r *http.Request) (*http.Response, error) {
	b := t.buffers.Get().(*bytes.Buffer)
	err := r.Write(b)
	if err == nil {
		err = send(c, b.Bytes())
	}
	clear(b.Bytes()) // a credential may be in it
	b.Reset()
	if b.Cap() <= keptBuffer {
		t.buffers.Put(b)
	}
	if err != nil {
		return nil, err
	}
	return t.receive(trace, c, r)
}

// keptBuffer bounds a buffer that is used again, in bytes.
const keptBuffer = 32 << 10

// send writes a request in one piece.
func send(c *conn, request []byte) error {
	before := c.socket.written.Load()
	if _, err := c.Conn.Write(request); err != nil {
		return &lostError{err, c.socket.written.Load() != before}
	}
	return nil
}
