// Package stream owns the reading of a body through a transformer: with chunks as large as its reader
// asks for, nothing held back that the transformer has let go, and memory bounded by what the
// transformer may look ahead. (transform.Reader holds 4 KiB and fails on what needs more.)
package stream

import (
	"errors"
	"io"
	"sync"

	"golang.org/x/text/transform"
)

const (
	chunk = 32 << 10
	// most is the longest stretch that a transformer may want to see at once.
	most = 4 << 20
)

// errStuck is the fault of a transformer that makes no progress.
var errStuck = errors.New("stream: the transformer makes no progress")

// buffers spares an allocation a body.
var buffers = sync.Pool{New: func() any { return new([chunk]byte) }}

// Reader reads source through a transformer.
type Reader struct {
	source io.Reader
	t      transform.Transformer

	mu     sync.Mutex // an http.Transport may close a request's body while it is read
	pooled *[chunk]byte
	buf    []byte
	r, w   int   // what is read and not transformed
	ended  error // of source
	want   bool  // the transformer has to see more input
	full   bool  // the transformer has more output
	spare  []byte
	held   []byte // of spare, not yet given out
}

// NewReader returns a Reader. The caller closes it, which does not close source.
func NewReader(source io.Reader, t transform.Transformer) *Reader {
	pooled := buffers.Get().(*[chunk]byte)
	return &Reader{source: source, t: t, pooled: pooled, buf: pooled[:]}
}

// Read gives what the transformer has let go; it waits for source only when that is nothing.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		switch {
		case r.pooled == nil:
			return 0, io.ErrClosedPipe
		case len(r.held) > 0:
			n := copy(p, r.held)
			r.held = r.held[n:]
			return n, nil
		case r.full || r.r < r.w && !r.want:
			n, err := r.transform(p)
			if n > 0 || err != nil {
				return n, err
			}
		case r.ended != nil:
			return 0, r.ended
		default:
			if err := r.fill(); err != nil {
				return 0, err
			}
		}
	}
}

// transform lets the transformer write to p, or aside when p is too small for anything.
func (r *Reader) transform(p []byte) (int, error) {
	eof := errors.Is(r.ended, io.EOF)
	nDst, nSrc, err := r.t.Transform(p, r.buf[r.r:r.w], eof)
	r.r += nSrc
	r.want, r.full = errors.Is(err, transform.ErrShortSrc), errors.Is(err, transform.ErrShortDst)
	switch {
	case err == nil && r.r < r.w, r.want && eof:
		return nDst, errStuck
	case r.full && nDst == 0 && nSrc == 0:
		if len(p) >= chunk {
			return 0, errStuck
		}
		if r.spare == nil {
			r.spare = make([]byte, chunk)
		}
		n, err := r.transform(r.spare)
		r.held = r.spare[:n]
		return 0, err
	case r.want, r.full:
		return nDst, nil
	}
	return nDst, err
}

// fill reads once, into room behind what is left.
func (r *Reader) fill() error {
	if r.r > 0 {
		copy(r.buf, r.buf[r.r:r.w])
		r.r, r.w = 0, r.w-r.r
	}
	if r.w == len(r.buf) {
		if len(r.buf) >= most {
			return errStuck
		}
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	n, err := r.source.Read(r.buf[r.w:])
	r.w += n
	r.ended = err
	if n > 0 || errors.Is(err, io.EOF) {
		r.want = false
	}
	return nil
}

// Close overwrites what was buffered and gives the memory back.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pooled == nil {
		return nil
	}
	clear(r.buf)
	clear(r.spare)
	clear(r.pooled[:])
	buffers.Put(r.pooled)
	r.pooled, r.buf, r.spare, r.held = nil, nil, nil, nil
	return nil
}
