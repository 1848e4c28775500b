package forward

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lectern-dev/lectern/proxy/internal/stream"
)

// sentBody is the caller's body on its way to the target.
type sentBody struct {
	source io.Reader
	x      *exchange
	most   int64  // 0: any size
	watch  *watch // nil: none
	// trailer takes the caller's trailers when the body has ended; nil: there are none.
	trailer http.Header

	started atomic.Bool
	ended   atomic.Bool
	closed  atomic.Bool
	fault   atomic.Pointer[error] // what the caller's side failed with
	n       int64
}

// Read reads from the caller.
func (b *sentBody) Read(p []byte) (int, error) {
	b.started.Store(true)
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.source.Read(p)
	if n > 0 {
		b.n += int64(n)
		b.x.record.bytesIn.Add(int64(n))
		if b.watch != nil {
			b.watch.progress()
		}
	}
	if b.most > 0 && b.n > b.most {
		err = errTooLarge
	}
	if err == nil {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		b.passTrailers()
		b.ended.Store(true)
		return n, err
	}
	b.fault.Store(&err)
	return n, err
}

// Close does nothing. The transport closes what it does not want any more of; closing the server's body would
// read on in it, for as long as the caller likes.
func (*sentBody) Close() error { return nil }

// unfinished tells whether the caller has more to send.
func (b *sentBody) unfinished() bool { return b != nil && !b.ended.Load() }

// linger is how long a caller that still sends is listened to after it was answered: a connection that is
// closed on what it sends takes the answer with it.
const linger = 500 * time.Millisecond

// end says that nobody wants more of the body. A read that waits for the caller is woken: the transport may
// be in one, and the server waits for that before it lets the connection go.
func (b *sentBody) end() {
	b.closed.Store(true)
	if b.unfinished() {
		_ = http.NewResponseController(b.x.w).SetReadDeadline(time.Now().Add(linger))
	}
}

// passTrailers fills in what the caller announced. (They are only known now, and the map is the one that the
// transport writes from.)
func (b *sentBody) passTrailers() {
	for name := range b.trailer {
		if values := b.x.r.Trailer[name]; len(values) > 0 {
			b.trailer[name] = values
		}
	}
}

// again returns the body for another try on another connection, which is possible while nothing was read.
func (b *sentBody) again() (io.ReadCloser, error) {
	if b.started.Load() {
		return nil, errors.New("the body is not held")
	}
	return b, nil
}

// heldBody returns a held body, values put in, as often as it is asked for.
func (o *outgoing) heldBody() io.ReadCloser {
	if o.filled == nil {
		return io.NopCloser(bytes.NewReader(o.held))
	}
	fresh := *o.filled
	fresh.Reset()
	return stream.NewReader(bytes.NewReader(o.held), &fresh)
}

// answerBody is the target's body on its way to the caller.
type answerBody struct {
	io.ReadCloser
	watch *watch
	most  int64 // 0: any size
	n     int64
	ended func() // called once, when the trailers are known
	once  sync.Once
}

// Read reads from the target.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.n += int64(n)
		b.watch.progress()
	}
	if b.most > 0 && b.n > b.most {
		return 0, errLong
	}
	if errors.Is(err, io.EOF) {
		b.once.Do(b.ended)
	}
	return n, err
}

// Close ends the answer.
func (b *answerBody) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(b.ended)
	return err
}
