package ingest

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/lectern-dev/lectern/shared/apierr"
)

// mediaTypes are the values of Content-Type with which the server accepts a body as NDJSON. NDJSON has no registered
// type, and senders such as curl and browsers use other types.
var mediaTypes = []string{
	"application/x-ndjson", "application/ndjson", "application/jsonl", "application/json",
	"text/plain", "application/octet-stream",
}

// zstdWindow is the largest window that a zstd stream may ask for, in bytes. RFC 8878, section 3.1.1.1.2, recommends
// that decoders support windows of up to 8 MB.
const zstdWindow = 8 << 20

// errStopped means that the reading of a body was stopped, because a batch of its records could not be stored.
var errStopped = errors.New("ingest was stopped")

// body is a request's body whose reading can be stopped. body records faults of the connection, to distinguish them
// from faults of the compression. The server limits how long a sender may be silent (READ_TIMEOUT).
type body struct {
	source  io.Reader
	control *http.ResponseController

	mu      sync.Mutex
	stopped bool
	broken  error // the fault that ended the connection in the middle of the body
}

func newBody(w http.ResponseWriter, r *http.Request) *body {
	return &body{source: r.Body, control: http.NewResponseController(w)}
}

// Read reads from the source. The error is errStopped if a call of stop ended the reading. Read keeps any other error
// except io.EOF for connectionFault.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.source.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return n, errStopped
	}
	b.broken = err
	return n, err
}

// stop makes a Read that waits fail with errStopped, and each later Read that would have to wait. If the body has
// ended, stop has no effect.
func (b *body) stop() {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	_ = b.control.SetReadDeadline(time.Unix(1, 0)) // a test's recorder has no deadlines
}

// connectionFault returns the fault that ended the connection in the middle of the body, or nil if there was none.
func (b *body) connectionFault() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.broken
}

// checkType refuses a body whose Content-Type is not one of mediaTypes in UTF-8. A body without a Content-Type
// passes.
func checkType(r *http.Request) error {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return nil
	}
	media, parameters, err := mime.ParseMediaType(header)
	charset, named := parameters["charset"]
	if err != nil || !slices.Contains(mediaTypes, media) || named && !strings.EqualFold(charset, "utf-8") {
		return apierr.New(apierr.UnsupportedMediaType, fmt.Sprintf(
			"Content-Type was given as %q; send application/x-ndjson, one JSON object a line, in UTF-8.", apierr.Shown(header)))
	}
	return nil
}

// decompress returns a reader of the decompressed body, and a function that frees the memory of the reader. The error
// is UnsupportedMediaType for an unknown Content-Encoding. Any other error means that the compression is broken or the
// body cannot be read.
func decompress(r *http.Request, b *body) (io.Reader, func(), error) {
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ", ")))
	switch encoding {
	case "", "identity":
		return b, func() {}, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(b)
		if errors.Is(err, io.EOF) && b.connectionFault() == nil {
			return strings.NewReader(""), func() {}, nil // an empty body is not a fault
		}
		if err != nil {
			return nil, nil, err
		}
		return z, func() { _ = z.Close() }, nil
	case "zstd":
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return nil, nil, apierr.New(apierr.UnsupportedMediaType, fmt.Sprintf(
		"Content-Encoding was given as %q; allowed: gzip, zstd, identity.", apierr.Shown(encoding)))
}
