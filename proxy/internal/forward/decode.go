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

// readable reports whether the proxy can decode the Content-Encoding coding, and so search the body. coding is in lower
// case, and "" is no encoding.
func readable(coding string) bool {
	switch coding {
	case "", "identity", "gzip", "x-gzip", "zstd":
		return true
	}
	return false
}

// scrubbedBody is the body of an answer, which the proxy decodes and searches while the caller reads the body.
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

// Close closes the target's body, releases the decoder, and adds the number of replaced secrets to the record. Later
// calls do nothing.
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

// decoding decodes a body that may be compressed. The first Read creates the decoder, because a body may take long to
// arrive.
type decoding struct {
	source io.Reader
	coding string
	plain  io.Reader
	stop   func()
}

// Read returns the decoded body. The error of a decoder becomes errDecode.
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
