package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/http/httpserver"
	"github.com/lectern-dev/lectern/shared/http/relay"
	"github.com/lectern-dev/lectern/shared/routes"
)

// service sends requests to one service, and passes the answers back to the clients.
type service struct {
	edge    *Edge
	name    routes.Service
	address string   // host:port
	key     []string // the value of httpserver.EdgeKeyHeader
	proxy   *httputil.ReverseProxy
	count   metric.MeasurementOption
}

// call holds the state of one request while the edge passes the request to a service.
type call struct {
	info   *httpapi.Info
	header http.Header // of the answer
	body   *relay.Body // nil: the request has none

	// begin marks the beginning of the answer. begin returns false if the edge has ended the wait before, so that no
	// answer may begin. Nil: the request does not wait.
	begin func() bool
	ended bool // the edge has ended the wait, and nothing is answered
}

type callKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// ServeHTTP sends r to the service, and passes the answer on to the client.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.send(w, r, &call{info: httpapi.InfoFrom(r.Context()), header: w.Header()})
}

// wait sends r, a request that waits for changes, to the service. If the edge stops before the answer begins, wait ends
// the request, and sends it again without a wait. Thus the client gets its cursor at once.
func (s *service) wait(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &call{info: httpapi.InfoFrom(r.Context()), header: w.Header(), begin: context.AfterFunc(s.edge.o.Stopping, cancel)}
	s.send(w, r.WithContext(ctx), c)
	if !c.ended {
		return
	}
	again := r.Clone(r.Context())
	query := again.URL.Query()
	query.Set("wait", "0")
	again.URL.RawQuery = query.Encode()
	again.Body, again.ContentLength = http.NoBody, 0
	s.ServeHTTP(w, again)
}

func (s *service) send(w http.ResponseWriter, r *http.Request, c *call) {
	if protocol := r.Header.Get("Upgrade"); strings.ContainsFunc(protocol, func(c rune) bool { return c < ' ' || c > '~' }) {
		// ReverseProxy refuses such a header, in a way that looks like a fault of the service.
		httpapi.WriteError(w, r, apierr.BadParameter("Upgrade", strings.ToValidUTF8(protocol, "\uFFFD"), "the name of a protocol"))
		return
	}
	if r.ContentLength != 0 {
		c.body = relay.NewBody(r.Body, r.Trailer)
		r.Body = c.body
	}
	s.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
}

const requestIDHeader = "X-Request-Id"

// rewrite makes the request that the service gets. ReverseProxy has removed the client's forwarding headers before.
func (s *service) rewrite(p *httputil.ProxyRequest) {
	c := callOf(p.In.Context())
	p.Out.URL.Scheme, p.Out.URL.Host = "http", s.address
	p.Out.URL.RawQuery = p.In.URL.RawQuery // ReverseProxy drops parameters that it cannot parse
	if s.name == routes.Proxy && p.In.URL.RawPath != "" {
		// As sent: net/url would decode %2F in a path with a brace that is not encoded. The path begins with one slash only.
		p.Out.URL.Opaque = p.In.URL.RawPath
	}
	p.Out.Host = p.In.Host
	s.introduce(p.In.Context(), p.Out.Header, c.info)
	c.body.SendTrailers(p.Out.Trailer)
}

// introduce sets the headers by which the edge introduces itself and the client to the service. These are the edge's
// key, the address of the client, and the scheme and host of links. introduce also adds the trace context if there is
// one, and the request's id, except for the proxy.
func (s *service) introduce(ctx context.Context, h http.Header, info *httpapi.Info) {
	h[httpserver.EdgeKeyHeader] = s.key
	h["X-Forwarded-For"] = []string{info.ClientAddress}
	if scheme, rest, ok := strings.Cut(info.BaseURL(), "://"); ok {
		host, _, _ := strings.Cut(rest, "/")
		h["X-Forwarded-Proto"], h["X-Forwarded-Host"] = []string{scheme}, []string{host}
	} else {
		// The client named no host, so Host becomes the service's address. Links must not show that.
		h["X-Forwarded-Host"] = []string{""}
	}
	if s.name != routes.Proxy { // the proxy would send the id on to its target
		h[requestIDHeader] = []string{info.RequestID}
	}
	if tel := s.edge.o.Telemetry; tel.Tracing() {
		tel.Propagator.Inject(ctx, propagation.HeaderCarrier(h))
	}
}

// errStopped rejects the answer to a request whose wait the edge, while stopping, has ended.
var errStopped = errors.New("the edge stops")

// answered adds the request's id to a service's answer without one, before ReverseProxy passes the answer on. The error
// is errStopped if the edge has ended the wait for the answer.
func (s *service) answered(res *http.Response) error {
	c := callOf(res.Request.Context())
	if c.begin != nil && !c.begin() {
		return errStopped
	}
	if len(res.Header[requestIDHeader]) == 0 {
		res.Header[requestIDHeader] = []string{c.info.RequestID}
	}
	delete(c.header, requestIDHeader) // the answer has one
	c.header["Content-Type"] = nil    // ReverseProxy adds to it; net/http must not guess one
	return nil
}

// failed answers a request to which the service gave no answer. For a wait that the edge has ended, failed only sets
// ended.
func (s *service) failed(w http.ResponseWriter, r *http.Request, err error) {
	c := callOf(r.Context())
	if c.begin != nil && s.edge.o.Stopping.Err() != nil {
		c.ended = true
		return
	}
	h := w.Header()
	h[requestIDHeader] = []string{c.info.RequestID} // ReverseProxy clears the headers after an interim answer
	if s.name == routes.Proxy {
		h["X-Proxy-Worker-Success"] = []string{"false"} // no target answered
	}
	httpapi.WriteError(w, r, s.fault(r, c.body.Fault(), err))
}

// fault returns the error that tells the client why the service gave no answer, and counts services that could not be
// reached. unread is the reason why the client's body could not be read, nil if the body could be read. err is the
// error of the connection to the service.
func (s *service) fault(r *http.Request, unread, err error) error {
	ctx := r.Context()
	switch {
	case ctx.Err() != nil:
		return ctx.Err() // the client disconnected, or the edge stops
	case errors.Is(unread, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %w", httpapi.ErrNotTaken, unread) // the client stalled
	case unread != nil:
		return apierr.New(apierr.InvalidBody, "The request's body ended before it was complete.").Because(unread)
	}
	dial, ok := errors.AsType[*net.OpError](err)
	unreached := ok && dial.Op == "dial"
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() && !unreached {
		return apierr.New(apierr.UpstreamTimeout, "The service did not answer in time.").Because(err)
	}
	s.edge.unreachable.Add(ctx, 1, s.count)
	if s.name == routes.Proxy && !unreached {
		// The target may have the request, so the client must decide whether to send it again.
		return apierr.New(apierr.UpstreamUnreachable, "The proxy ended the connection before it answered. The target may have received the request.").Because(err)
	}
	return apierr.NotAvailable(err)
}
