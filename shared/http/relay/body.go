package relay

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// Body is the body of a client's request on its way to another server. ReverseProxy announces the client's trailers, and
// Body passes their values on. Another goroutine than the handler's reads the body. A nil Body is a request without a body.
type Body struct {
	io.ReadCloser
	received http.Header // the client's trailers; net/http fills in their values at the end of the body
	sent     http.Header // the trailers of the request that goes on; nil: none

	fault atomic.Pointer[error]
}

// NewBody returns a Body that reads source. received are the trailers of the client's request.
func NewBody(source io.ReadCloser, received http.Header) *Body {
	return &Body{ReadCloser: source, received: received}
}

// SendTrailers fills in the values of sent at the end of the body. sent are the trailers of the request that goes on, with
// their names alone. SendTrailers must be called before that request is sent.
func (b *Body) SendTrailers(sent http.Header) {
	if b != nil {
		b.sent = sent
	}
}

// Read reads from the client.
func (b *Body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		for name := range b.sent {
			b.sent[name] = b.received[name]
		}
	default:
		b.fault.Store(&err)
	}
	return n, err
}

// Fault returns why the body could not be read, or nil if every read succeeded.
func (b *Body) Fault() error {
	if b == nil {
		return nil
	}
	if fault := b.fault.Load(); fault != nil {
		return *fault
	}
	return nil
}
