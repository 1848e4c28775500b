package relay

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// Body is the body of a client's request on its way to another server. ReverseProxy announces the client's trailers,
// and Body passes their values on. Another goroutine than the handler's may read the body. A nil Body has no trailers
// and no fault.
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

// SendTrailers sets the trailers of the request that goes on. sent has their names; Read fills in their values at the
// end of the body. The caller calls SendTrailers before it sends that request.
func (b *Body) SendTrailers(sent http.Header) {
	if b != nil {
		b.sent = sent
	}
}

// Read reads a part of the client's body. At the end of the body, Read fills in the trailers. Read keeps any other
// error for Fault.
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

// Fault returns the last error with which reading the client's body failed, or nil if no read has failed. The end of
// the body is no failure.
func (b *Body) Fault() error {
	if b == nil {
		return nil
	}
	if fault := b.fault.Load(); fault != nil {
		return *fault
	}
	return nil
}
