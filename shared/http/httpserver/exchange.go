package httpserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/lectern-dev/lectern/shared/admission"
	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

// exchange is one request and its answer. It wraps net/http's ResponseWriter: it counts the bytes of the answer and
// gives the client time to take each part. A severed exchange sends nothing more. The writers of gzhttp and otelhttp
// wrap the exchange in turn. The handler gets the outermost writer.
//
// Exchanges are not pooled. A goroutine that the handler started may hold the request's context, and with it the
// Info, for longer than the request.
type exchange struct {
	http.ResponseWriter
	control *http.ResponseController // of ResponseWriter
	chain   *chain
	info    httpapi.Info
	log     requestLog

	request *http.Request
	handler http.Handler
	body    *patientBody    // nil when the request has none
	ctx     context.Context // the request's, with its span
	start   time.Time
	coding  string // the content coding that the body of a GET would have

	status  int // 0 until the answer has begun
	bytes   int64
	severed bool // nothing may follow: the answer is incomplete
	aborted bool // the connection is to end without the rest of the answer

	holder admission.Holder // whose share the slot and the bytes count against
	slots  int64            // 1 while the request has a slot
	held   int64            // bytes of the answer that the process holds

	fromEdge bool // the request had a key of the edge
}

// errSevered is returned by writes after the handler gave up.
var errSevered = errors.New("the answer was given up")

// WriteHeader begins the answer, or sends an interim one.
func (x *exchange) WriteHeader(status int) {
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		x.extend()
		x.ResponseWriter.WriteHeader(status)
		return
	}
	if x.status != 0 || x.severed {
		return
	}
	x.status = status
	if x.chain.draining.Load() || x.isLast() { // while it drains, the client's next request is for another replica
		x.Header()["Connection"] = x.chain.headers.connectionClose
	}
	if x.coding != "" && x.request.Method == http.MethodHead {
		x.describeCoded()
	}
	x.body.bound()
	x.extend()
	x.ResponseWriter.WriteHeader(status)
}

// isLast reports whether the connection must end with the answer, because the bytes after it may be no request of the
// client's.
//
// An answer never waits for the rest of the request's body: a client that does not send it would hold its place. What
// follows such an answer may be the rest. A proxy on the way may have framed a chunked body by an additional
// Content-Length (RFC 9112, section 6.1).
func (x *exchange) isLast() bool {
	return x.request.ProtoMajor == 1 && (len(x.request.TransferEncoding) > 0 || x.body.unfinished())
}

// describeCoded gives the answer to HEAD the headers that the compressed body of GET would have. Its length is
// unknown, so Content-Length is left out (RFC 9110, section 8.6: it must be GET's or absent).
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

// maxWrite is the largest part of a body that a client must take within WRITE_TIMEOUT, in bytes. With 30 s, a
// client that reads 9 kB/s gets the whole body.
const maxWrite = 256 << 10

// Write sends a part of the body.
func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	written := 0
	for {
		if x.severed {
			return written, errSevered
		}
		x.extend()
		n, err := x.ResponseWriter.Write(b[written:min(written+maxWrite, len(b))])
		x.bytes += int64(n)
		written += n
		if err != nil || written == len(b) {
			return written, err
		}
	}
}

// extend sets the write deadline to WRITE_TIMEOUT from now. http.Server's own WriteTimeout limits the whole request, so
// it would end long uploads and long lists.
func (x *exchange) extend() {
	_ = x.control.SetWriteDeadline(time.Now().Add(x.chain.config.WriteTimeout)) // a closed connection fails the write
}

// FlushError sends the buffered data.
func (x *exchange) FlushError() error {
	if x.severed {
		return errSevered
	}
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	x.extend()
	err := x.control.Flush()
	if x.request.ProtoMajor != 1 {
		// On HTTP/2 the deadline would also end the stream while the handler writes nothing.
		_ = x.control.SetWriteDeadline(time.Time{}) // a closed stream needs none
	}
	return err
}

// Flush is FlushError for callers that expect no error.
func (x *exchange) Flush() { _ = x.FlushError() }

// Unwrap gives http.ResponseController the methods that this type does not have.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// finish completes the answer after the handler has returned.
func (x *exchange) finish() {
	if x.severed {
		return
	}
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	x.extend() // net/http sends the rest of the buffered data
}

// abort ends the connection without completing the answer. It does not return.
//
// An HTTP/1.0 client takes the end of the connection for the end of the body, so its connection is reset.
func (x *exchange) abort() {
	if !x.request.ProtoAtLeast(1, 1) {
		if conn, _, err := x.control.Hijack(); err == nil {
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = conn.Close()
		}
	}
	panic(http.ErrAbortHandler) // net/http ends the connection and logs nothing
}

// baseURL is the request's Info.BaseURL. Below a host for clients within the platform, there is no documented path.
func (x *exchange) baseURL() string {
	if x.chain.origin.inside {
		return x.chain.origin.publicURL
	}
	return x.chain.origin.baseURL(x.request, x.fromEdge)
}

// requestURL is the request's Info.RequestURL.
func (x *exchange) requestURL() string { return x.chain.origin.requestURL(x.request, x.fromEdge) }

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

// WithGroup returns a handler that puts later attributes into a group.
func (l *requestLog) WithGroup(name string) slog.Handler {
	return &requestLog{Handler: l.Handler.WithGroup(name), id: l.id}
}

// SetReadDeadline replaces READ_TIMEOUT for the rest of the body. The handler calls it through
// http.ResponseController. A time in the past ends a Read that waits, and each later Read. After the end of the body it
// does nothing.
func (x *exchange) SetReadDeadline(t time.Time) error {
	if x.body == nil {
		return nil
	}
	return x.body.setDeadline(t)
}

// patientBody is the body of a request. Each read may wait for READ_TIMEOUT. The whole has no limit, so that a long
// upload may take as long as the client goes on sending.
type patientBody struct {
	io.ReadCloser
	control *http.ResponseController
	stall   time.Duration
	reading sync.Mutex // held by a Read
	over    bool       // the handler has returned; guarded by reading

	// Another goroutine than the handler's may read the body, or set a deadline.
	mu    sync.Mutex
	ended bool // the body was read to its end
	fixed bool // the deadline stays: the body has ended, a read has failed, or the handler has set a deadline
}

// bound gives the client READ_TIMEOUT from now to send more of the body. The reads of net/http need this deadline too.
// It reads the rest of the body to find the next request, before the headers of an answer and after the handler.
func (b *patientBody) bound() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.fixed {
		_ = b.control.SetReadDeadline(time.Now().Add(b.stall)) // a closed connection fails the read
	}
}

// unfinished reports whether the body was not read to a well-formed end.
func (b *patientBody) unfinished() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.ended
}

// setDeadline sets the handler's own deadline.
func (b *patientBody) setDeadline(t time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return nil
	}
	b.fixed = true
	return b.control.SetReadDeadline(t)
}

// Close ends the handler's reads, and gives the client READ_TIMEOUT from now to send the rest of the body. It never waits
// for the client: net/http reads the rest once the handler has returned. If another goroutine still reads, net/http would
// end that read and drop the deadline, and then wait for the rest without any. So Close ends that read itself.
func (b *patientBody) Close() error {
	if !b.reading.TryLock() {
		_ = b.control.SetReadDeadline(time.Unix(1, 0)) // a closed connection fails the read
		b.reading.Lock()
		_ = b.control.SetReadDeadline(time.Now().Add(b.stall))
	}
	b.over = true
	b.reading.Unlock()
	b.bound()
	return nil
}

// Read reads within the limit.
func (b *patientBody) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.over {
		return 0, http.ErrBodyReadAfterClose
	}
	b.bound()
	n, err := b.ReadCloser.Read(p)
	if err == nil {
		return n, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fixed = true // after a fault, net/http must not wait once more for the client
	if errors.Is(err, io.EOF) && !b.ended {
		b.ended = true
		// net/http goes on reading to notice when the client disconnects. A silent client is no fault there.
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
