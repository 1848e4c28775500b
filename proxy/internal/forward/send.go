package forward

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"sync/atomic"
	"time"

	"github.com/lectern-dev/lectern/proxy/internal/dial"
	"github.com/lectern-dev/lectern/proxy/policy"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/http/relay"
)

// transportKey returns the key of the transport for an endpoint: its name, and its settings for connections.
func transportKey(e *policy.Endpoint) dial.Key {
	return dial.Key{Endpoint: e.Name, Roots: e.RootsID, Connect: e.Timeouts.Connect, Headers: e.Timeouts.Headers}
}

// send sends the request to the target, and passes the answer on to the caller. send returns an error only while the
// caller has no answer. When the answer breaks off later, ReverseProxy panics with http.ErrAbortHandler. The server
// then ends the connection or the stream, so that the partial answer does not look whole.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, out outgoing, v policy.Verdict, in incoming, rec *record) error {
	limits, timeouts := v.Endpoint.Limits, v.Endpoint.Timeouts
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	if timeouts.Total > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, timeouts.Total, errTotal)
		defer stop()
	}
	total := h.newTotalTimer(out, r, timeouts, func() { cancel(errTotal) })
	if total != nil {
		defer total.Stop()
	}
	idle := newIdleTimer(timeouts.Idle, func() { cancel(errIdle) })
	defer idle.stop()
	ctx, span := h.startSpan(ctx, out.target, rec)
	defer span.end(rec)

	var reused atomic.Bool
	forwarded := r.WithContext(httptrace.WithClientTrace(ctx, followPhases(idle, &reused)))
	forwarded.Header = nil // Rewrite sets the headers. ReverseProxy must not see that the caller offers an upgrade.
	var sent *relay.Body   // nil: no body streams
	if out.body == nil && r.ContentLength != 0 {
		sent = relay.NewBody(&sentBody{source: r.Body, maxBytes: limits.RequestBytes, idle: idle, record: rec}, r.Trailer)
		forwarded.Body = sent
		// The answer may begin before the body has ended. Without full duplex, net/http would read the rest of the body
		// first.
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 always is full duplex
	}
	answer := &answer{
		endpoint: v.Endpoint, searches: v.Endpoint.Scrubs(), allowedOrigin: in.origin, idle: idle, total: total, span: span, record: rec,
		links: links{in.target, in.prefix, in.base(httpapi.InfoFrom(r.Context())), len(r.Header[KeyHeader]) > 0},
		endRequest: func() {
			// The transport's Close waits for its read of the caller's body.
			_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // a closed connection needs none
		},
	}
	var failed error
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			out.write(p.Out)
			if sent != nil && r.ContentLength > 0 && r.ContentLength <= maxKept {
				answer.kept = &keptBody{source: p.Out.Body}
				p.Out.Body, _ = answer.kept.open() // cannot fail before the answer
				p.Out.GetBody = answer.kept.open
			}
			if sent != nil && len(r.Trailer) > 0 {
				p.Out.Trailer = trailersToSend(r.Trailer)
				sent.SendTrailers(p.Out.Trailer)
			}
		},
		Transport:      h.o.Pool.Transport(transportKey(v.Endpoint), v.Endpoint.Roots),
		FlushInterval:  -1,
		BufferPool:     &h.buffers,
		ErrorLog:       silent,
		ModifyResponse: answer.judge,
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	proxy.ServeHTTP(newWriter(w, r, h.o.Stall, rec), forwarded)
	if failed == nil {
		return nil
	}
	if err := sent.Fault(); err != nil && context.Cause(ctx) == nil {
		return bodyRefusal(err, limits.RequestBytes)
	}
	return upstreamFault(ctx, failed, reused.Load())
}

// newTotalTimer returns a timer that calls expired after the default time of a request. newTotalTimer returns nil if
// the endpoint sets its own total time, or if there is no default. The result is also nil for a request that streams a
// body of unknown length.
func (h *Handler) newTotalTimer(out outgoing, r *http.Request, timeouts policy.Timeouts, expired func()) *time.Timer {
	streams := out.body == nil && r.ContentLength < 0
	if timeouts.Total > 0 || h.o.TotalTimeout <= 0 || streams {
		return nil
	}
	return time.AfterFunc(h.o.TotalTimeout, expired)
}

// silent drops the log of ReverseProxy, which may quote bytes from a target, and so a credential.
var silent = log.New(io.Discard, "", 0)

// maxInterim is the greatest number of interim answers (1xx) that the proxy accepts from a target for one request.
const maxInterim = 64

// followPhases returns a trace that moves the timer idle through the phases sending and waiting, and sets reused if the
// connection served another request before. The trace ends a request with more than maxInterim interim answers.
func followPhases(idle *idleTimer, reused *atomic.Bool) *httptrace.ClientTrace {
	var interim atomic.Int32
	return &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) {
			reused.Store(c.Reused)
			idle.enter(sending)
		},
		WroteRequest: func(httptrace.WroteRequestInfo) { idle.enter(waiting) },
		Got1xxResponse: func(int, textproto.MIMEHeader) error {
			if interim.Add(1) > maxInterim {
				return errInterim
			}
			return nil
		},
	}
}

// sentBody is the caller's body on its way to the target. sentBody limits the body to maxBytes, and counts its bytes in
// the record.
type sentBody struct {
	source   io.Reader
	maxBytes int64 // 0: any size
	idle     *idleTimer
	record   *record

	n int64
}

// Read reads from the caller, and restarts the idle timer. The error is errTooLarge when the body is over its limit.
func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.source.Read(p)
	if n > 0 {
		b.n += int64(n)
		b.record.bytesIn.Add(int64(n))
		b.idle.moved()
	}
	if b.maxBytes > 0 && b.n > b.maxBytes {
		err = errTooLarge
	}
	return n, err
}

// Close does nothing, because the server closes the caller's body.
func (*sentBody) Close() error { return nil }

// bodyRefusal returns the refusal for err, the reason why the caller's body could not be read; see bodyFault. maxBytes
// is the limit of the body.
func bodyRefusal(err error, maxBytes int64) error {
	if errors.Is(err, errTooLarge) {
		return tooLarge(maxBytes)
	}
	return bodyFault(err)
}
