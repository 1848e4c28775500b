package forward

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/lectern-dev/lectern/proxy/internal/scrub"
	"github.com/lectern-dev/lectern/proxy/internal/stream"
)

// dropped are the headers of a target that would speak for our host.
var dropped = []string{
	"Set-Cookie", "Set-Cookie2", "Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "Report-To", "Reporting-Endpoints", "Nel",
	"Public-Key-Pins", "Public-Key-Pins-Report-Only", "Expect-Ct", "Service-Worker-Allowed", "Origin-Agent-Cluster", "Accept-Ch", "Critical-Ch",
	"Sec-Session-Registration", "Set-Login", SuccessHeader,
}

// droppedPrefix begins the target's own CORS headers.
const droppedPrefix = "Access-Control-"

func drop(h http.Header) {
	for _, name := range dropped {
		delete(h, name)
	}
	for name := range h {
		if strings.HasPrefix(name, droppedPrefix) {
			delete(h, name)
		}
	}
}

// Values of headers that all answers share: whoever changes one of them sets a new slice.
var (
	succeeded = []string{"true"}
	noSniff   = []string{"nosniff"}
	sandbox   = []string{"sandbox"}
	exposed   = []string{"*"}
)

// hop are the headers that are of the connection to the target (RFC 9110, section 7.6.1).
var hop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func dropHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hop {
		delete(h, name)
	}
}

// maxFields bounds an answer's headers in number: each is searched, and takes more memory than its bytes.
const maxFields = 1000

func fields(h http.Header) (n int) {
	for _, values := range h {
		n += len(values)
	}
	return n
}

// answer makes the target's answer the caller's. It changes what is told in the contract and nothing else.
func (c *call) answer(res *http.Response) error {
	c.watch.enter(c.x.verdict.Endpoint.Timeouts.Idle, true, errIdle)
	c.answered.Store(true)
	c.span.answered(res)
	switch {
	case res.StatusCode < 200 || res.StatusCode > 999:
		return errStatus // also a switch of protocols, which was not asked for
	case fields(res.Header) > maxFields:
		return errFields
	}
	dropHop(res.Header)
	drop(res.Header)
	drop(res.Trailer)
	if len(res.Trailer) > 0 && c.x.r.ProtoMajor == 1 {
		// HTTP/2 has trailers behind a body of known length; HTTP/1.1 behind chunks only.
		delete(res.Header, "Content-Length")
		res.ContentLength = -1
	}
	if c.matcher != nil {
		c.scrubHeader(res.Header)
		c.scrubHeader(res.Trailer) // names, as yet
	}
	announced := maps.Clone(res.Trailer)
	coding := strings.ToLower(strings.TrimSpace(strings.Join(res.Header["Content-Encoding"], ",")))
	whole := hasBody(res) && len(announced) == 0 && (c.matcher == nil || coding == "" || coding == "identity") && c.readWhole(res)
	body := res.Body
	if b, ok := body.(interface{ Flowing() bool }); ok && c.matcher == nil {
		c.flowing = b.Flowing // what is searched may be held back
	}
	if c.matcher != nil && !whole {
		if hasBody(res) {
			switch coding {
			case "", "identity", "gzip", "x-gzip", "zstd":
				body = c.scrubBody(body, coding)
				delete(res.Header, "Content-Encoding")
				delete(res.Header, "Content-Length")
				res.ContentLength = -1
			default:
				if !c.x.verdict.Endpoint.PassUnreadable {
					return errUnreadable
				}
			}
		} else if res.Request.Method == http.MethodHead {
			delete(res.Header, "Content-Length") // GET's body may be of another length
		}
	}
	if !whole && res.Body != http.NoBody {
		res.Body = &answerBody{
			ReadCloser: body, watch: c.watch, most: c.x.verdict.Endpoint.Limits.ResponseBytes,
			ended: func() { c.trailers(res, announced) },
		}
	}
	h := res.Header
	h[SuccessHeader] = succeeded
	h["X-Content-Type-Options"] = noSniff
	if policies := h["Content-Security-Policy"]; len(policies) > 0 {
		h["Content-Security-Policy"] = append(policies, sandbox[0])
	} else {
		h["Content-Security-Policy"] = sandbox
	}
	if c.x.mayRead() {
		c.x.allowOrigin(h)
	}
	return nil
}

// wholeTo is the largest body that is tried to be read at once, in bytes.
const wholeTo = 16 << 10

// readWhole reads a small body of known length when all of it has arrived with its headers, as most do, and
// takes the credentials out. It then keeps a length, and goes out together with the headers. Else the body
// is streamed, beginning with what was read.
func (c *call) readWhole(res *http.Response) bool {
	length, most := res.ContentLength, c.x.verdict.Endpoint.Limits.ResponseBytes
	if length <= 0 || length > wholeTo || most > 0 && length > most {
		return false
	}
	body := res.Body
	first := make([]byte, length)
	n, err := body.Read(first)
	if n < len(first) {
		rest := io.Reader(body)
		if err != nil {
			rest = failed{err}
		}
		res.Body = withCloser{io.MultiReader(bytes.NewReader(first[:n]), rest), body}
		return false
	}
	if c.matcher != nil {
		clean, found := c.matcher.Bytes(first)
		if found > 0 {
			clear(first)
			first = clean
			c.x.record.scrubbed += found
		}
		delete(res.Header, "Content-Encoding") // identity
	}
	res.Header["Content-Length"] = []string{strconv.Itoa(len(first))}
	c.whole = first
	return true
}

// withCloser is a body that was read in part.
type withCloser struct {
	io.Reader
	io.Closer
}

// failed is the rest of a body that ended too early.
type failed struct{ err error }

// Read fails.
func (f failed) Read([]byte) (int, error) { return 0, f.err }

// hasBody tells whether a body may follow the headers (RFC 9110, section 6.4.1).
func hasBody(res *http.Response) bool {
	return res.Request.Method != http.MethodHead && res.StatusCode != http.StatusNoContent &&
		res.StatusCode != http.StatusNotModified && res.Body != http.NoBody
}

// trailers does with trailers what was done with headers. Those that were announced are told by deliver, the
// others here.
func (c *call) trailers(res *http.Response, announced http.Header) {
	drop(res.Trailer)
	if c.matcher != nil {
		c.scrubHeader(res.Trailer)
	}
	for name, values := range res.Trailer {
		if _, ok := announced[name]; !ok {
			c.x.w.Header()[http.TrailerPrefix+name] = values
			delete(res.Trailer, name)
		}
	}
	for name := range announced {
		if _, ok := res.Trailer[name]; !ok {
			res.Trailer[name] = nil
		}
	}
}

// scrubHeader takes the credentials out of values, and headers away whose names hold one.
func (c *call) scrubHeader(h http.Header) {
	for name, values := range h {
		if c.inName(name) {
			delete(h, name)
			c.x.record.scrubbed++
			continue
		}
		for i, v := range values {
			if clean, found := c.matcher.String(v); found {
				values[i] = clean
				c.x.record.scrubbed++
			}
		}
	}
}

// inName tells whether a header's name holds a credential. Names lose their case on the way, so it does not
// count.
func (c *call) inName(name string) bool {
	for _, credential := range c.x.verdict.Credentials {
		value := credential.Value.Reveal()
		for at := 0; at+len(value) <= len(name); at++ {
			if bytes.EqualFold([]byte(name[at:at+len(value)]), value) {
				return true
			}
		}
	}
	return false
}

// scrubBody returns the body decoded, without the credentials.
func (c *call) scrubBody(body io.ReadCloser, coding string) io.ReadCloser {
	plain := io.Reader(body)
	var decoder *decoding
	if coding != "" && coding != "identity" {
		decoder = &decoding{source: body, coding: coding}
		plain = decoder
	}
	s := scrub.NewStream(c.matcher)
	return &scrubbedBody{Reader: stream.NewReader(plain, s), body: body, decoder: decoder, s: s, record: &c.x.record}
}

// scrubbedBody is a body that is searched as it is read.
type scrubbedBody struct {
	*stream.Reader
	body    io.Closer
	decoder *decoding
	s       *scrub.Stream
	record  *record
	closed  bool
}

// Close closes the body that is read.
func (b *scrubbedBody) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	b.record.scrubbed += b.s.Found()
	err := b.body.Close()
	_ = b.Reader.Close() // it has nothing to fail with
	if b.decoder != nil {
		b.decoder.close()
	}
	return err
}

// maxWindow bounds what a zstd body may make its reader remember, in bytes; RFC 9659 allows as much on the
// web.
const maxWindow = 8 << 20

// decoding reads a compressed body. It begins when it is first read, as a body may be long in coming.
type decoding struct {
	source io.Reader
	coding string
	plain  io.Reader
	stop   func()
}

// Read reads what was compressed.
func (d *decoding) Read(p []byte) (int, error) {
	if d.plain == nil {
		if err := d.begin(); err != nil {
			return 0, err
		}
	}
	n, err := d.plain.Read(p)
	if err != nil && err != io.EOF {
		err = fault("the answer could not be decoded") // a decoder may quote what it read
	}
	return n, err
}

func (d *decoding) begin() error {
	source := bufio.NewReader(d.source)
	if _, err := source.Peek(1); err != nil {
		return err // an empty body, which is not compressed
	}
	if d.coding == "zstd" {
		z, err := zstd.NewReader(source, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return fault("the answer could not be decoded")
		}
		d.plain, d.stop = z, z.Close
		return nil
	}
	g, err := gzip.NewReader(source)
	if err != nil {
		return fault("the answer could not be decoded")
	}
	d.plain = g
	return nil
}

func (d *decoding) close() {
	if d.stop != nil {
		d.stop()
	}
}
