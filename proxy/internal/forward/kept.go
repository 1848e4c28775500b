package forward

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// maxKept is the length of the longest streamed body that the proxy keeps for another attempt, in bytes.
const maxKept = 64 << 10

var errNotKept = errors.New("forward: the body is not kept any more")

// keptBody keeps the bytes of a streamed body that have passed, until the answer begins. The transport can then send a
// request again that the target never took, such as a request after the target's GOAWAY. Another attempt sends the kept
// bytes, and then reads on from the caller.
type keptBody struct {
	answered atomic.Bool

	mu      sync.Mutex // held while source is read
	source  io.Reader
	kept    []byte
	at      int   // the position of the latest reader in kept
	ended   error // the error that source returned
	readers int
}

// open returns a reader of the body from its beginning. Earlier readers fail from then on. open waits for a read of
// source that is under way.
func (b *keptBody) open() (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answered.Load() {
		return nil, errNotKept
	}
	b.readers++
	b.at = 0
	return &keptReader{b, b.readers}, nil
}

// answer drops the kept bytes, because the answer has begun. During a read of source, answer does not wait, and the
// read drops the bytes. For a nil keptBody, answer does nothing.
func (b *keptBody) answer() {
	if b == nil {
		return
	}
	b.answered.Store(true)
	if b.mu.TryLock() {
		defer b.mu.Unlock()
		b.drop()
	}
}

// drop drops the kept bytes after the answer has begun, unless the latest reader still needs bytes.
func (b *keptBody) drop() {
	if b.answered.Load() && b.at == len(b.kept) {
		b.kept, b.at = nil, 0
	}
}

// keptReader reads a keptBody from its beginning.
type keptReader struct {
	body   *keptBody
	number int
}

// Read returns kept bytes, and reads from the caller after the last kept byte.
func (r *keptReader) Read(p []byte) (n int, err error) {
	b := r.body
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.drop()
	switch {
	case r.number != b.readers:
		return 0, io.ErrClosedPipe
	case b.at < len(b.kept):
		n = copy(p, b.kept[b.at:])
	case b.ended != nil:
		return 0, b.ended
	default:
		n, b.ended = b.source.Read(p)
		b.kept = append(b.kept, p[:n]...)
		err = b.ended
	}
	b.at += n
	return n, err
}

// Close does nothing, because the server closes the caller's body.
func (*keptReader) Close() error { return nil }
