package forward

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"sync/atomic"

	"golang.org/x/net/http/httpguts"

	"github.com/lectern-dev/lectern/proxy/internal/dial"
	"github.com/lectern-dev/lectern/proxy/internal/h1"
	"github.com/lectern-dev/lectern/proxy/internal/scrub"
	"github.com/lectern-dev/lectern/proxy/policy"
)

// call is one request to a target.
type call struct {
	x        *exchange
	out      *outgoing
	body     *sentBody // nil: there is none, or a held one
	watch    *watch
	span     *span
	matcher  *scrub.Matcher // nil: the answer is not searched
	answered atomic.Bool
	interim  atomic.Int32
	whole    []byte      // the answer's body, when all of it came with the headers; nil: it streams
	flowing  func() bool // whether reading it does not wait; nil: that is not known
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

	r := c.request(httptrace.WithClientTrace(ctx, c.trace()))
	if c.body != nil {
		x.sending = c.body
		defer c.body.end()
		_ = http.NewResponseController(x.w).EnableFullDuplex() // HTTP/2 always is
	}
	c.watch.enter(e.Timeouts.Connect, false, errConnect)
	res, err := x.h.o.Pool.Transport(dial.Key{Endpoint: e.Name, Roots: e.RootsID}, e.Roots).RoundTrip(r)
	if err == nil {
		if err = c.answer(res); err == nil {
			c.deliver(res)
			return nil
		}
		_ = res.Body.Close() // why the answer is not given on says more
	}
	if c.body != nil {
		if fault := c.body.fault.Load(); fault != nil && context.Cause(ctx) == nil {
			if *fault == error(errTooLarge) {
				return tooLarge(e.Limits.RequestBytes)
			}
			return bodyFault(*fault)
		}
	}
	return upstreamFault(ctx, err)
}

// searchFor has the answer searched for the credentials of the request. What it returns, if anything, is to
// be called when it was.
func (c *call) searchFor() (forget func()) {
	credentials := c.x.verdict.Credentials
	switch len(credentials) {
	case 0:
		return nil
	case 1:
		c.matcher = credentials[0].Derive(newSearch).(*scrub.Matcher)
		return nil
	}
	values := make([][]byte, len(credentials))
	for i, credential := range credentials {
		values[i] = credential.Value.Reveal()
	}
	c.matcher = scrub.NewMatcher(values...)
	return c.matcher.Zero
}

// newSearch makes the search for one credential, which the credential keeps.
func newSearch(value []byte) policy.Derived { return scrub.NewMatcher(value) }

// maxInterim bounds the interim answers to a request.
const maxInterim = 64

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
		Got1xxResponse: func(int, textproto.MIMEHeader) error {
			if c.interim.Add(1) > maxInterim {
				return errInterim
			}
			return nil
		},
	}
}

// request makes the request that goes out: to the host and port that were decided on, with the path and
// query that were matched.
func (c *call) request(ctx context.Context) *http.Request {
	t, final := c.x.target, c.out.final
	path, err := url.PathUnescape(final.Path)
	if err != nil {
		path = final.Path // can not be: it was read and written by package target
	}
	r := c.x.r.WithContext(ctx)
	r.URL = &url.URL{
		Scheme: t.Scheme, Host: t.Address(), Path: path, RawPath: final.Path,
		RawQuery: final.Query, ForceQuery: final.HasQuery,
	}
	r.Host, r.RequestURI, r.Close = t.Authority(), "", false
	r.Header, r.Trailer = c.header(), nil
	switch {
	case c.out.held != nil:
		c.sendHeld(r)
	case r.ContentLength == 0:
		r.Body = nil // then it may be sent again
	default:
		c.stream(r)
	}
	return r
}

// nobody names no program: net/http would name itself.
var nobody = []string{""}

// header returns the headers that go out.
func (c *call) header() http.Header {
	h := c.out.header
	if httpguts.HeaderValuesContainsToken(c.x.r.Header["Te"], "trailers") {
		h["Te"] = []string{"trailers"} // we pass them on; what else it says is of the hop before
	} else {
		delete(h, "Te")
	}
	if _, named := h["User-Agent"]; !named {
		h["User-Agent"] = nobody
	}
	return h
}

// stream sends the caller's body as it comes, and its trailers.
func (c *call) stream(r *http.Request) {
	c.body = &sentBody{source: c.x.r.Body, x: c.x, most: c.x.verdict.Endpoint.Limits.RequestBytes, watch: c.watch}
	r.Body, r.GetBody = c.body, c.body.again
	if n := len(c.x.r.Trailer); n > 0 {
		r.Trailer = make(http.Header, n)
		for name := range c.x.r.Trailer {
			if !isRemoved(name) {
				r.Trailer[name] = nil
			}
		}
		c.body.trailer = r.Trailer
	}
}

// sendHeld sends a held body, of known length.
func (c *call) sendHeld(r *http.Request) {
	r.TransferEncoding = nil
	r.ContentLength = int64(len(c.out.held))
	if c.out.filled != nil {
		r.ContentLength = c.out.body.Size(c.out.filled)
	}
	if r.ContentLength == 0 {
		r.Body = nil
		return
	}
	r.GetBody = func() (io.ReadCloser, error) { return h1.Held{ReadCloser: c.out.heldBody()}, nil }
	r.Body, _ = r.GetBody() // never fails
}
