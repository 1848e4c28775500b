package h1

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync/atomic"
)

// readBuffer is how much is read from a connection at once, in bytes. The trailers of an answer have to fit into
// it.
const readBuffer = 32 << 10

func newReader() *bufio.Reader { return bufio.NewReaderSize(nil, readBuffer) }

// receive reads an answer up to its body.
func (t *Transport) receive(trace *httptrace.ClientTrace, c *conn, r *http.Request) (*http.Response, error) {
	c.reader = t.readers.Get().(*bufio.Reader)
	c.reader.Reset(c)
	var res *http.Response
	strict := true
	for {
		ok, err := c.awaitHead()
		if err != nil {
			return nil, err
		}
		strict = strict && ok
		if res, err = http.ReadResponse(c.reader, r); err != nil {
			if c.left <= 0 {
				err = errHeaders
			}
			return nil, err
		}
		if res.StatusCode >= 200 || res.StatusCode < 100 {
			break
		}
		if res.StatusCode == http.StatusSwitchingProtocols {
			return nil, errSwitched
		}
		// The limit goes on: interim answers without end are as bad as headers without.
		if trace.Got1xxResponse != nil {
			if err := trace.Got1xxResponse(res.StatusCode, textproto.MIMEHeader(res.Header)); err != nil {
				return nil, err
			}
		}
	}
	c.bodyFollows()
	again := strict && !res.Close && !r.Close && res.ProtoAtLeast(1, 1) && res.StatusCode >= 200
	if res.Body == http.NoBody {
		t.finish(c, again)
		return res, nil
	}
	res.Body = &body{source: res.Body, t: t, c: c, ctx: r.Context(), again: again}
	return res, nil
}

// finish ends a request whose answer was read to its end. Again says that the connection may take another.
func (t *Transport) finish(c *conn, again bool) {
	living := c.stop() // else the request's end is the connection's
	again = again && living && c.reader.Buffered() == 0
	c.reader.Reset(nil)
	t.readers.Put(c.reader)
	c.reader, c.stop = nil, nil
	if again {
		t.idle.put(c)
		return
	}
	_ = c.Conn.Close() // the answer is whole
}

// body is an answer's body. Closing it before its end closes the connection, also while it is read.
type body struct {
	source io.Reader
	t      *Transport
	c      *conn
	ctx    context.Context
	again  bool
	ended  atomic.Bool
	result error // of reads after the end; of the reader alone
}

// Read reads the body. At its end the answer's trailers are there.
func (b *body) Read(p []byte) (int, error) {
	if b.ended.Load() {
		if b.result == nil {
			b.result = http.ErrBodyReadAfterClose
		}
		return 0, b.result
	}
	n, err := b.source.Read(p)
	if err == nil {
		return n, nil
	}
	if err != io.EOF {
		if cause := context.Cause(b.ctx); cause != nil {
			err = cause
		}
	}
	b.result = err
	switch {
	case b.ended.Swap(true): // it was closed meanwhile
	case err == io.EOF:
		b.t.finish(b.c, b.again)
	default:
		b.c.abandon()
	}
	return n, err
}

// record is more than a TLS record takes at most (RFC 8446, section 5.2; RFC 5246, section 6.2.3), in bytes.
const record = 5 + 16<<10 + 2<<10

// Flowing tells whether so much has arrived that a read does not wait.
func (b *body) Flowing() bool { return !b.ended.Load() && b.c.socket.arrived() >= record }

// Close ends the body.
func (b *body) Close() error {
	if !b.ended.Swap(true) {
		b.c.abandon()
	}
	return nil
}

// awaitHead waits for an answer's headers, and tells whether all readers understand where they and the body
// end alike.
func (c *conn) awaitHead() (strict bool, err error) {
	for {
		n := c.reader.Buffered()
		head, _ := c.reader.Peek(n) // what is there
		whole, strict := examine(head)
		switch {
		case whole:
			return strict, nil
		case n == c.reader.Size():
			return false, nil // too long to be looked at as a whole
		}
		if _, err := c.reader.Peek(n + 1); err != nil {
			if !c.begun {
				return false, &lostError{err, true}
			}
			return false, nil // who reads it will say more
		}
	}
}

// examine looks for the end of an answer's headers. It is strict with them where net/http, as the RFC allows, is
// not: a line ends with a carriage return and a line feed and holds no other (RFC 9112, section 2.2), goes on
// in no other (section 5.2), has no space before its colon (section 5.1), and says the body's length once and in
// one way (section 6.3). What is not strict may still be read; but somebody on the way may have read it
// otherwise, and taken a part of the body for the next answer.
func examine(head []byte) (whole, strict bool) {
	strict = true
	lengths, codings := 0, 0
	for {
		end := bytes.IndexByte(head, '\n')
		if end < 0 {
			return false, false
		}
		line, ok := bytes.CutSuffix(head[:end], []byte{'\r'})
		head = head[end+1:]
		if !ok || bytes.IndexByte(line, '\r') >= 0 {
			strict = false
		}
		if len(line) == 0 {
			return true, strict && lengths+codings <= 1
		}
		name, _, ok := bytes.Cut(line, []byte{':'})
		if !ok {
			continue // the first line; another one net/http refuses
		}
		switch first, last := line[0], name[max(0, len(name)-1):]; {
		case first == ' ' || first == '\t' || len(last) == 1 && (last[0] == ' ' || last[0] == '\t'):
			strict = false
		case len(name) == len("Content-Length") && bytes.EqualFold(name, []byte("Content-Length")):
			lengths++
		case len(name) == len("Transfer-Encoding") && bytes.EqualFold(name, []byte("Transfer-Encoding")):
			codings++
		}
	}
}
