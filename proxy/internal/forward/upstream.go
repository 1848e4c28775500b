package forward

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/lectern-dev/lectern/proxy/internal/dial"
	"github.com/lectern-dev/lectern/proxy/internal/scrub"
)

// call is one request to a target.
type call struct {
	x        *exchange
	out      *outgoing
	body     *sentBody // nil: a held one
	watch    *watch
	span     *span
	matcher  *scrub.Matcher // nil: the answer is not searched
	answered atomic.Bool
	failure  error
}

type callKey struct{}

// reverse is the standard library's reverse proxy, told about each call by its request's context.
type reverse struct{ httputil.ReverseProxy }

func newReverse() *reverse {
	r := &reverse{}
	r.ReverseProxy = httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { callOf(p.Out).rewrite(p.Out) },
		ModifyResponse: func(res *http.Response) error {
			return callOf(res.Request).answer(res)
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			callOf(r).failure = err
		},
		Transport:     byCall{},
		FlushInterval: -1,
		BufferPool:    &copyBuffers{sync.Pool{New: func() any { return new([32 << 10]byte) }}},
		ErrorLog:      log.New(io.Discard, "", 0), // it may quote what a target sent
	}
	return r
}

func callOf(r *http.Request) *call { return r.Context().Value(callKey{}).(*call) }

// byCall sends each request by its endpoint's transport.
type byCall struct{}

// RoundTrip does what http.RoundTripper says.
func (byCall) RoundTrip(r *http.Request) (*http.Response, error) {
	x := callOf(r).x
	e := x.verdict.Endpoint
	return x.h.o.Pool.Transport(dial.Key{Endpoint: e.Name, Roots: e.RootsID}, e.Roots).RoundTrip(r)
}

// copyBuffers spares an allocation an answer.
type copyBuffers struct{ sync.Pool }

// Get returns a buffer.
func (b *copyBuffers) Get() []byte { return b.Pool.Get().(*[32 << 10]byte)[:] }

// Put takes it back, overwritten.
func (b *copyBuffers) Put(buf []byte) {
	clear(buf)
	b.Pool.Put((*[32 << 10]byte)(buf))
}

// forward sends the request and gives the answer back.
func (x *exchange) forward(out *outgoing) error {
	e := x.verdict.Endpoint
	ctx, cancel := context.WithCancelCause(x.r.Context())
	defer cancel(nil)
	if e.Timeouts.Total > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, e.Timeouts.Total, errTotal)
		defer stop()
	}
	c := &call{x: x, out: out, watch: newWatch(cancel)}
	defer c.watch.stop()
	if !e.KeepSecrets {
		if forget := c.searchFor(); forget != nil {
			defer forget()
		}
	}
	ctx, c.span = x.h.startSpan(ctx, x)
	defer c.span.end(x)

	r := x.r.WithContext(context.WithValue(httptrace.WithClientTrace(ctx, c.trace()), callKey{}, c))
	r.URL = &url.URL{}
	r.Header = out.header
	if out.held == nil {
		c.body = &sentBody{ReadCloser: x.r.Body, x: x, most: e.Limits.RequestBytes, watch: c.watch}
		r.Body = c.body
		if r.ContentLength != 0 {
			x.sending = c.body
			defer c.body.end()
			_ = http.NewResponseController(x.w).EnableFullDuplex() // HTTP/2 always is
		}
	} else {
		r.ContentLength = int64(len(out.held)) // not 0 where there is a body
	}
	c.watch.enter(e.Timeouts.Connect, false, errConnect)
	w := x.newWriter()
	x.h.reverse.ServeHTTP(w, r)
	if c.failure == nil {
		return nil
	}
	if c.body != nil {
		if fault := c.body.fault.Load(); fault != nil && context.Cause(ctx) == nil {
			if *fault == error(errTooLarge) {
				return tooLarge(e.Limits.RequestBytes)
			}
			return bodyFault(*fault)
		}
	}
	return upstreamFault(ctx, c.failure)
}

// searchFor has the answer searched for the credentials of the request. What it returns, if anything, is to
// be called when it was.
func (c *call) searchFor() (forget func()) {
	credentials := c.x.verdict.Credentials
	switch len(credentials) {
	case 0:
		return nil
	case 1:
		c.matcher = credentials[0].Matcher()
		return nil
	}
	values := make([][]byte, len(credentials))
	for i, credential := range credentials {
		values[i] = credential.Value.Reveal()
	}
	c.matcher = scrub.NewMatcher(values...)
	return c.matcher.Zero
}

// trace follows the phases of the request.
func (c *call) trace() *httptrace.ClientTrace {
	t := &c.x.verdict.Endpoint.Timeouts
	return &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			if !c.answered.Load() {
				c.watch.enter(t.Idle, true, errIdle)
			}
		},
		WroteRequest: func(httptrace.WroteRequestInfo) {
			if !c.answered.Load() {
				c.watch.enter(t.Headers, false, errHeaders)
			}
		},
	}
}

// rewrite makes the request that goes out: to the host and port that were decided on, with the path and
// query that were matched. Out is the reverse proxy's copy, rid of what belongs to a hop.
func (c *call) rewrite(out *http.Request) {
	t, final := c.x.target, c.out.final
	path, err := url.PathUnescape(final.Path)
	if err != nil {
		path = final.Path // can not be: it was read and written by package target
	}
	out.URL = &url.URL{
		Scheme: t.Scheme, Host: t.Address(), Path: path, RawPath: final.Path,
		RawQuery: final.Query, ForceQuery: final.HasQuery,
	}
	out.Host = t.Authority()
	out.Trailer = nil
	if c.out.held != nil {
		c.rewriteHeld(out)
		return
	}
	if out.Body == nil {
		return
	}
	if n := len(c.x.r.Trailer); n > 0 {
		out.Trailer = make(http.Header, n)
		for name := range c.x.r.Trailer {
			if !isRemoved(name) {
				out.Trailer[name] = nil
			}
		}
		c.body.trailer = out.Trailer
	}
	body := out.Body
	out.GetBody = func() (io.ReadCloser, error) {
		if _, err := c.body.again(); err != nil {
			return nil, err
		}
		return body, nil
	}
}

// rewriteHeld sends a held body, of known length.
func (c *call) rewriteHeld(out *http.Request) {
	out.TransferEncoding = nil
	out.ContentLength = int64(len(c.out.held))
	if c.out.filled != nil {
		out.ContentLength = c.out.body.Size(c.out.filled)
	}
	if out.ContentLength == 0 {
		out.Body, out.GetBody = http.NoBody, nil
		return
	}
	out.GetBody = c.out.heldBody
	out.Body, _ = c.out.heldBody() // never fails
}
