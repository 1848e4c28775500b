package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// reply is the http.ResponseWriter of an answer of [direct]'s. It writes what net/http's would: RFC 9112 for how a
// body is framed, and where that leaves a choice, the same. What is there together leaves together, by one write.
type reply struct {
	direct  *direct
	conn    *conn
	request *http.Request
	cancel  context.CancelFunc // ends the request's context

	header http.Header
	status int   // 0 until WriteHeader
	length int64 // Content-Length; -1: not said
	wrote  int64 // bytes of the body

	out     *[]byte // what leaves next, as far as it is framed; nil: nothing
	pending *[]byte // of the body, not framed yet; nil: nothing
	framed  bool    // the head is whole
	chunked bool
	closes  bool  // the connection ends behind it
	err     error // of a write

	typed, dated, coded bool // the handler set Content-Type, Date, Content-Encoding
	unmeasured          bool // no Content-Length is to be found: the handler set it, or trailers
	trailers            []string
}

const (
	// unframed is how much of a body may wait for its end, which then makes a Content-Length, as in net/http.
	unframed = 2 << 10
	// sniffed is how much of a body tells its type: http.DetectContentType.
	sniffed = 512
	// copied is the largest part of an answer that is copied together to leave together. More leaves from where it
	// is (writev(2)).
	copied = 16 << 10
)

// Header returns what WriteHeader takes, and behind the body the trailers.
func (w *reply) Header() http.Header { return w.header }

// WriteHeader begins the answer, or sends one that goes before it (RFC 9110, section 15.2).
func (w *reply) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("httpserver: status %d; allowed are 100 to 999", status))
	}
	if w.status != 0 {
		return
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		w.begin(status, func(name string, _ []string) bool { return name != "Content-Length" && name != "Transfer-Encoding" })
		*w.out = append(*w.out, crlf...)
		_ = w.send(*w.out) // the answer itself will say so
		return
	}
	w.status = status
	w.begin(status, w.note)
}

// begin writes the status line and the fields that goes lets through.
func (w *reply) begin(status int, goes func(name string, values []string) bool) {
	w.out = w.direct.buffer()
	out := strconv.AppendInt(append(*w.out, "HTTP/1.1 "...), int64(status), 10)
	out = append(out, ' ')
	if text := http.StatusText(status); text != "" {
		out = append(out, text...)
	} else {
		out = strconv.AppendInt(append(out, "status code "...), int64(status), 10)
	}
	out = append(out, crlf...)

	var space [24]string
	names := space[:0]
	for name := range w.header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if values := w.header[name]; goes(name, values) {
			out = appendField(out, name, values)
		}
	}
	*w.out = out
}

// note takes what a field says of the body and the connection, and tells whether it goes as it is. How the body is
// framed is for frame to say.
func (w *reply) note(name string, values []string) bool {
	switch name {
	case "Content-Length":
		w.unmeasured = true
		if len(values) > 0 {
			if length, err := strconv.ParseInt(values[0], 10, 64); err == nil && length >= 0 {
				w.length = length
			}
		}
		return false
	case "Transfer-Encoding":
		return false
	case "Content-Type":
		w.typed = true
		return w.status != http.StatusNotModified
	case "Content-Encoding":
		w.coded = len(values) > 0 && values[0] != ""
	case "Date":
		w.dated = true
	case "Connection":
		w.closes = httpguts.HeaderValuesContainsToken(values, "close")
		return !w.closes
	case "Trailer":
		for _, list := range values {
			w.unmeasured = true
			for name := range strings.SplitSeq(list, ",") {
				if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); httpguts.ValidTrailerHeader(name) {
					w.trailers = append(w.trailers, name)
				}
			}
		}
	default:
		if strings.HasPrefix(name, http.TrailerPrefix) {
			w.unmeasured = true
			return false
		}
	}
	return true
}

var crlf = []byte("\r\n")

// appendField writes a field, on one line whatever its values hold.
func appendField(to []byte, name string, values []string) []byte {
	if !httpguts.ValidHeaderFieldName(name) {
		return to
	}
	for _, value := range values {
		to = append(append(to, name...), ": "...)
		begin := len(to)
		to = append(to, strings.Trim(value, " \t\r\n")...)
		for i, b := range to[begin:] {
			if b == '\r' || b == '\n' {
				to[begin+i] = ' '
			}
		}
		to = append(to, crlf...)
	}
	return to
}

// frame completes the head, now that first is known to begin the body, and whether it is all of it.
func (w *reply) frame(first []byte, all bool) {
	w.framed = true
	out := *w.out
	allowed, bodiless := bodyAllowed(w.status), w.request.Method == http.MethodHead
	if allowed && all && !w.unmeasured && (!bodiless || len(first) > 0) {
		w.length = int64(len(first))
	}
	if allowed && !w.typed && !w.coded && len(first) > 0 {
		out = append(append(append(out, "Content-Type: "...), http.DetectContentType(first)...), crlf...)
	}
	if !w.dated {
		out = append(time.Now().UTC().AppendFormat(append(out, "Date: "...), http.TimeFormat), crlf...)
	}
	switch {
	case !allowed:
	case w.length >= 0:
		out = append(strconv.AppendInt(append(out, "Content-Length: "...), w.length, 10), crlf...)
	case !bodiless:
		w.chunked = true
		out = append(out, "Transfer-Encoding: chunked\r\n"...)
	}
	if w.closes = w.closes || w.direct.stopping.Load(); w.closes {
		out = append(out, "Connection: close\r\n"...)
	}
	*w.out = append(out, crlf...)
}

// bodyAllowed tells whether an answer of a status may have a body (RFC 9110, section 6.4.1).
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// Write sends a part of the body, or keeps a copy until there is more.
func (w *reply) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if len(b) == 0 {
		return 0, nil
	}
	if !bodyAllowed(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	w.wrote += int64(len(b))
	if w.length >= 0 && w.wrote > w.length {
		return 0, http.ErrContentLength
	}
	if w.wrote != w.length && w.waiting()+len(b) <= unframed {
		if w.pending == nil {
			w.pending = w.direct.buffer()
		}
		*w.pending = append(*w.pending, b...)
		return len(b), w.err
	}
	if err := w.push(b, false); err != nil {
		return 0, err
	}
	return len(b), nil
}

// waiting is how much of the body is kept.
func (w *reply) waiting() int {
	if w.pending == nil {
		return 0
	}
	return len(*w.pending)
}

// push sends what waits, and b behind it. All says that nothing of the body comes after it.
func (w *reply) push(b []byte, all bool) error {
	var kept []byte
	if w.pending != nil {
		kept = *w.pending
		defer w.direct.giveBack(&w.pending)
	}
	if !w.framed {
		first := kept
		if len(kept) == 0 {
			first = b
		} else if rest := sniffed - len(kept); rest > 0 && !w.typed {
			first = append(kept[:len(kept):len(kept)], b[:min(rest, len(b))]...)
		}
		w.frame(first, all)
	}
	if w.request.Method == http.MethodHead {
		kept, b = nil, nil
	}
	size := len(kept) + len(b)
	if w.out == nil {
		if size == 0 && !(w.chunked && all) {
			return w.err
		}
		w.out = w.direct.buffer()
	}
	out := *w.out
	inChunk := w.chunked && size > 0
	if inChunk {
		out = append(strconv.AppendInt(out, int64(size), 16), crlf...)
	}
	out = append(out, kept...)
	if len(out)+len(b) > copied {
		if inChunk {
			return w.send(out, b, crlf)
		}
		return w.send(out, b)
	}
	out = append(out, b...)
	if inChunk {
		out = append(out, crlf...)
	}
	if w.chunked && all {
		out = append(w.appendTrailers(append(out, "0\r\n"...)), crlf...)
	}
	return w.send(out)
}

func (w *reply) appendTrailers(to []byte) []byte {
	for name, values := range w.header {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			to = appendField(to, name, values)
		}
	}
	for _, name := range w.trailers {
		to = appendField(to, name, w.header[name])
	}
	return to
}

// send sends what out has become, and more behind it, unless an earlier part could not be sent. A client that can not
// be written to is gone.
func (w *reply) send(out []byte, more ...[]byte) error {
	if w.err == nil {
		if len(more) == 0 {
			_, w.err = w.conn.Write(out)
		} else {
			w.err = w.conn.writeAll(append(net.Buffers{out}, more...))
		}
		if w.err != nil {
			w.cancel()
		}
	}
	*w.out = out
	w.direct.giveBack(&w.out)
	return w.err
}

// FlushError sends what there is.
func (w *reply) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.push(nil, false)
}

// Flush sends what there is, for callers that take no error.
func (w *reply) Flush() { _ = w.FlushError() }

// SetWriteDeadline bounds the writes to come.
func (w *reply) SetWriteDeadline(t time.Time) error { return w.conn.SetWriteDeadline(t) }

// EnableFullDuplex lets a body be read beside the answer: there is none.
func (w *reply) EnableFullDuplex() error { return nil }

// finish sends what is left of the answer once the handler has returned, and tells whether another may follow on the
// connection.
func (w *reply) finish() (stays bool) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	whole := w.length < 0 || w.wrote == w.length || w.request.Method == http.MethodHead || !bodyAllowed(w.status)
	err := w.push(nil, true)
	_ = w.conn.SetWriteDeadline(time.Time{}) // whoever answers next sets one
	return err == nil && whole && !w.closes
}

// errOver is what a write gets once the handler has returned.
var errOver = errors.New("httpserver: the answer is over")

// free gives back what the answer used, sent or not.
func (w *reply) free() {
	w.err = errOver
	w.direct.giveBack(&w.out)
	w.direct.giveBack(&w.pending)
}

// buffer returns an empty one; giveBack takes it.
func (d *direct) buffer() *[]byte {
	b := d.buffers.Get().(*[]byte)
	*b = (*b)[:0]
	return b
}

// giveBack takes a buffer, if there is one, unless a large answer made it large.
func (d *direct) giveBack(b **[]byte) {
	if *b != nil && cap(**b) <= 2*copied {
		d.buffers.Put(*b)
	}
	*b = nil
}
