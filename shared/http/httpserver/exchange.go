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

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/limits"
)

// exchange is one request and its answer. The exchange wraps net/http's ResponseWriter: it counts the bytes of the
// answer and gives the client time to take each part. The writers of otelhttp and gzhttp may wrap the exchange in turn.
// The handler gets the outermost writer.
//
// Exchanges are not pooled. A goroutine that the handler started may hold the request's context, and with it the Info,
// for longer than the request.
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

	holder limits.Holder // whose share the slot and the bytes count against
	slots  int64         // 1 while the request has a slot
	held   int64         // bytes of the answer that the process holds

	fromEdge bool // the request had a key of the edge
}

// errSevered is the error of a write after the handler has panicked: the answer stays incomplete.
var errSevered = errors.New("the answer was given up")

// WriteHeader begins the answer with the status, or sends an interim answer (1xx except 101). A second final status is
// ignored, and so is the final status of a severed answer.
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
	if x.chain.draining.Load() || x.isLast() { // while draining, the client's next request is for another replica
		x.Header()["Connection"] = x.chain.headers.connectionClose
	}
	if x.coding != "" && x.request.Method == http.MethodHead {
		x.describeCoded()
	}
	x.body.bound()
	x.extend()
	x.ResponseWriter.WriteHeader(status)
}

// isLast reports whether the connection must end with the answer, because the bytes after the answered request may not
// be the client's next request.
//
// An answer does not wait for the rest of the request's body, so the next bytes may be this rest. After a chunked body,
// a proxy on the way may see another end of the request (RFC 9112, section 6.1).
func (x *exchange) isLast() bool {
	return x.request.ProtoMajor == 1 && (len(x.request.TransferEncoding) > 0 || x.body.unfinished())
}

// describeCoded gives an answer to HEAD the Content-Encoding of GET, if the body of GET may be compressed. The
// compressed length is unknown, so describeCoded then removes Content-Length (RFC 9110, section 8.6: it must be GET's
// or absent).
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

// maxWrite is the largest part of a body that a client must take within WRITE_TIMEOUT, in bytes. With 30 s, a client
// must read at least 9 kB/s to get the whole body.
const maxWrite = 256 << 10

// Write sends b in parts of at most maxWrite bytes, each with a deadline of its own. The first Write begins the answer
// with 200 if the handler set no status. In a severed answer, Write fails with errSevered.
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

// extend sets the write deadline to WRITE_TIMEOUT from now. http.Server's own WriteTimeout would limit the whole
// request, and so end long uploads and long lists.
func (x *exchange) extend() {
	_ = x.control.SetWriteDeadline(time.Now().Add(x.chain.config.WriteTimeout)) // a closed connection fails the write
}

// FlushError sends the buffered part of the answer to the client, as [http.ResponseController.Flush] asks. In a severed
// answer, FlushError fails with errSevered.
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

// Flush implements http.Flusher: it calls FlushError and ignores the error.
func (x *exchange) Flush() { _ = x.FlushError() }

// Unwrap returns net/http's writer, so that http.ResponseController finds the methods that exchange does not have.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// finish begins an empty answer with 200 if the handler wrote nothing, and gives the client time for the buffered rest.
// A severed answer stays as it is.
func (x *exchange) finish() {
	if x.severed {
		return
	}
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	x.extend() // net/http sends the rest of the buffered data
}

// abort breaks the answer off: net/http ends the connection, or the stream of HTTP/2. abort does not return, but panics
// with http.ErrAbortHandler.
//
// An HTTP/1.0 client treats the end of the connection as the end of the body, so abort resets its connection.
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

// baseURL is the request's Info.BaseURL: PUBLIC_URL, or else the scheme and host that the client used. For clients
// within the platform, baseURL returns PUBLIC_URL even if it is empty.
func (x *exchange) baseURL() string {
	if x.chain.origin.inside {
		return x.chain.origin.publicURL
	}
	return x.chain.origin.baseURL(x.request, x.fromEdge)
}

// requestURL is the request's Info.RequestURL: the scheme and host that the client used, or PUBLIC_URL if it has the
// same host. The result is "" if the client named no valid host.
func (x *exchange) requestURL() string { return x.chain.origin.requestURL(x.request, x.fromEdge) }

// requestLog is a slog.Handler that adds the request's id to each line.
type requestLog struct {
	slog.Handler
	id string
}

// Handle writes one line, with the request's id as request_id.
func (l *requestLog) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(slog.String("request_id", l.id))
	return l.Handler.Handle(ctx, r)
}

// WithAttrs returns a requestLog that also adds attrs to each line.
func (l *requestLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &requestLog{Handler: l.Handler.WithAttrs(attrs), id: l.id}
}

// WithGroup returns a requestLog that puts later attributes, and the request's id, into a group.
func (l *requestLog) WithGroup(name string) slog.Handler {
	return &requestLog{Handler: l.Handler.WithGroup(name), id: l.id}
}

// SetReadDeadline replaces READ_TIMEOUT for the rest of the body. The handler calls SetReadDeadline through
// http.ResponseController. A time in the past makes a Read that waits fail. Without a body, or after its end,
// SetReadDeadline does nothing.
func (x *exchange) SetReadDeadline(t time.Time) error {
	if x.body == nil {
		return nil
	}
	return x.body.setDeadline(t)
}

// patientBody is the body of a request. Each read may wait for READ_TIMEOUT, unless the handler sets a deadline. The
// whole body has no time limit, so that a long upload may take as long as the client continues to send.
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

// bound gives the client READ_TIMEOUT from now to send more of the body, unless the deadline is fixed. net/http itself
// also reads the body, to find the next request, and needs the deadline too.
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

// unfinished reports whether the server has not yet read the body to a well-formed end. A nil body has ended.
func (b *patientBody) unfinished() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.ended
}

// setDeadline sets the handler's own read deadline, which replaces READ_TIMEOUT for the rest of the body. After the end
// of the body, setDeadline does nothing.
func (b *patientBody) setDeadline(t time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return nil
	}
	b.fixed = true
	return b.control.SetReadDeadline(t)
}

// Close ends the reads of the handler, and a Read that still waits in another goroutine. Close does not wait for the
// rest of the body: net/http reads the rest once the handler has returned, with a deadline.
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

// Read reads a part of the body, and fails if the client sends nothing for READ_TIMEOUT. A deadline that the handler
// has set replaces this limit. After Close, Read returns http.ErrBodyReadAfterClose.
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
		// net/http continues to read to notice when the client disconnects. A silent client is no fault then.
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
