// Package stream reads a body through a transformer. A Reader returns output as soon as the transformer produces the
// output, and the memory of a Reader is bounded. transform.Reader is not enough: it has a buffer of 4 KiB, and fails on
// a transformer that needs more input at once.
package stream

import (
	"errors"
	"io"
	"sync"

	"golang.org/x/text/transform"
)

const (
	chunk = 32 << 10
	// maxBuffer bounds the input that a transformer may need at once, in bytes.
	maxBuffer = 4 << 20
)

// errStuck is the error of Read when the transformer makes no progress, or needs more than maxBuffer bytes at once.
var errStuck = errors.New("stream: the transformer makes no progress")

// buffers keeps the buffers of closed Readers for new Readers, to save allocations.
var buffers = sync.Pool{New: func() any { return new([chunk]byte) }}

// Reader is an io.ReadCloser that returns the output of a transformer for the bytes of source. Read and Close may run
// in different goroutines.
type Reader struct {
	source io.Reader
	t      transform.Transformer

	mu     sync.Mutex // an http.Transport may close a request's body while it is read
	pooled *[chunk]byte
	buf    []byte
	r, w   int   // buf[r:w] is input that is not yet transformed
	ended  error // the error that source returned
	want   bool  // the transformer needs more input
	full   bool  // the transformer has more output
	spare  []byte
	held   []byte // the part of spare that Read has not returned yet
}

// NewReader returns a Reader that passes source through t. The caller must close the Reader. Close does not close
// source.
func NewReader(source io.Reader, t transform.Transformer) *Reader {
	pooled := buffers.Get().(*[chunk]byte)
	return &Reader{source: source, t: t, pooled: pooled, buf: pooled[:]}
}

// Read returns the transformer's output. Read reads from source only when there is no output. After Close, Read fails
// with io.ErrClosedPipe, unless p is empty.
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

// transform lets the transformer write to p, and returns the number of bytes written to p. When p is too small for any
// output, the output goes to r.held.
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

// fill reads from source once, and appends the bytes to the input that is not transformed yet. fill keeps the error of
// source in r.ended. The result is errStuck if the input already has maxBuffer bytes.
func (r *Reader) fill() error {
	if r.r > 0 {
		copy(r.buf, r.buf[r.r:r.w])
		r.r, r.w = 0, r.w-r.r
	}
	if r.w == len(r.buf) {
		if len(r.buf) >= maxBuffer {
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

// Close overwrites the buffers, because they may contain secrets, and releases them. Close waits for a Read that is
// under way, and does not close source. The error is always nil.
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
