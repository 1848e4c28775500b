package forward

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/lectern-dev/lectern/proxy/internal/scrub"
	"github.com/lectern-dev/lectern/proxy/internal/stream"
)

// readable reports whether the proxy can decode the Content-Encoding, and so search the body.
func readable(coding string) bool {
	switch coding {
	case "", "identity", "gzip", "x-gzip", "zstd":
		return true
	}
	return false
}

// scrubbedBody decodes and searches a body while it is read.
type scrubbedBody struct {
	*stream.Reader
	body   io.Closer
	plain  *decoding
	found  *scrub.Stream
	record *record
	closed bool
}

func newScrubbedBody(body io.ReadCloser, coding string, found *scrub.Stream, rec *record) *scrubbedBody {
	plain := &decoding{source: body, coding: coding}
	return &scrubbedBody{Reader: stream.NewReader(plain, found), body: body, plain: plain, found: found, record: rec}
}

// Close closes the body that is read.
func (b *scrubbedBody) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	b.record.scrubbed += b.found.Found()
	err := b.body.Close()
	_ = b.Reader.Close() // always nil
	b.plain.close()
	return err
}

// maxWindow bounds the window of a zstd body, in bytes. RFC 9659 requires decoders on the web to support this size.
const maxWindow = 8 << 20

// errDecode replaces a decoder's error, which may quote its input.
const errDecode fault = "the answer could not be decoded"

// decoding reads a body that may be compressed. It creates the decoder at the first read, because a body may take long
// to arrive.
type decoding struct {
	source io.Reader
	coding string
	plain  io.Reader
	stop   func()
}

// Read reads the decoded body.
func (d *decoding) Read(p []byte) (int, error) {
	if d.plain == nil {
		if err := d.begin(); err != nil {
			return 0, err
		}
	}
	n, err := d.plain.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errDecode
	}
	return n, err
}

func (d *decoding) begin() error {
	if d.coding == "" || d.coding == "identity" {
		d.plain = d.source
		return nil
	}
	source := bufio.NewReader(d.source)
	if _, err := source.Peek(1); err != nil {
		return err // an empty body is not compressed
	}
	if d.coding == "zstd" {
		z, err := zstd.NewReader(source, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return errDecode
		}
		d.plain, d.stop = z, z.Close
		return nil
	}
	g, err := gzip.NewReader(source)
	if err != nil {
		return errDecode
	}
	d.plain = g
	return nil
}

func (d *decoding) close() {
	if d.stop != nil {
		d.stop()
	}
}
