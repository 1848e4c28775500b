// Package relay has what the edge and the credential proxy both add to [httputil.ReverseProxy]: buffers that are used
// again, and the trailers of a request. The package knows no routes and no policy. ReverseProxy itself removes the
// hop-by-hop headers (RFC 9110, section 7.6.1).
package relay

import "sync"

const bufferSize = 32 << 10

// Buffers is an httputil.BufferPool of buffers of 32 KiB. The zero value is ready for use.
type Buffers struct {
	// Clear overwrites a buffer with zeros when it is put back, so that the next answer finds no secret of the answer
	// before.
	Clear bool

	pool sync.Pool
}

// Get returns a buffer of 32 KiB that nobody else uses. The caller gives the buffer back with Put.
func (b *Buffers) Get() []byte {
	if buffer, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return buffer[:]
	}
	return make([]byte, bufferSize)
}

// Put takes back a buffer that Get returned. The caller must not use the buffer any more.
func (b *Buffers) Put(buffer []byte) {
	if b.Clear {
		clear(buffer)
	}
	b.pool.Put((*[bufferSize]byte)(buffer))
}
