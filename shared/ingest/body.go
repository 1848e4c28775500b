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

// mediaTypes are what NDJSON is sent as. It has no registered type; curl and browsers send others.
var mediaTypes = []string{
	"application/x-ndjson", "application/ndjson", "application/jsonl", "application/json",
	"text/plain", "application/octet-stream",
}

// zstdWindow is the largest window that a zstd stream may ask for, in bytes (RFC 8878, section 3.1.1.1.2
// recommends decoders to support 8 MiB).
const zstdWindow = 8 << 20

// errStopped ends a reading that is of no use any more.
var errStopped = errors.New("ingest was stopped")

// body is a request's body whose sender may not fall silent.
type body struct {
	source  io.Reader
	control *http.ResponseController
	silence time.Duration

	mu      sync.Mutex
	stopped bool
	broken  error // what the connection ended with, other than the body's end
}

func newBody(w http.ResponseWriter, r *http.Request, silence time.Duration) *body {
	return &body{source: r.Body, control: http.NewResponseController(w), silence: silence}
}

// Read reads, and gives the sender the whole silence again.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.stopped {
		b.mu.Unlock()
		return 0, errStopped
	}
	_ = b.control.SetReadDeadline(time.Now().Add(b.silence)) // a test's recorder has no deadlines
	b.mu.Unlock()
	n, err := b.source.Read(p)
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		if errors.Is(err, io.EOF) {
			// The server watches the connection from here on, and would take the deadline for the
			// client's end.
			_ = b.control.SetReadDeadline(time.Time{})
		} else {
			b.broken = err
		}
	}
	return n, err
}

// stop ends a Read that waits, and all that follow.
func (b *body) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	_ = b.control.SetReadDeadline(time.Unix(1, 0))
}

// connectionFault returns what the connection ended with in the middle of the body, nil if it did not.
func (b *body) connectionFault() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.broken
}

// checkType refuses a body that says it is something else.
func checkType(r *http.Request) error {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return nil
	}
	media, parameters, err := mime.ParseMediaType(header)
	charset, named := parameters["charset"]
	if err != nil || !slices.Contains(mediaTypes, media) || named && !strings.EqualFold(charset, "utf-8") {
		return apierr.New(apierr.UnsupportedMediaType, fmt.Sprintf(
			"Content-Type was given as %q; send application/x-ndjson, one JSON object a line, in UTF-8.", cut(header)))
	}
	return nil
}

// decompress returns a reader of what b holds, and what gives its memory back.
func decompress(r *http.Request, b *body) (io.Reader, func(), error) {
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ", ")))
	switch encoding {
	case "", "identity":
		return b, func() {}, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(b)
		if errors.Is(err, io.EOF) && b.connectionFault() == nil {
			return strings.NewReader(""), func() {}, nil // an empty body says nothing wrong
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
		"Content-Encoding was given as %q; allowed: gzip, zstd, identity.", cut(encoding)))
}
