package forward

import (
	"maps"
	"net/http"
	"time"
)

// writer is what the target's answer is written to. Until the answer begins its headers are kept apart from
// those that the proxy's own answers bear.
type writer struct {
	http.ResponseWriter
	x          *exchange
	controller *http.ResponseController
	headers    http.Header // of the target
}

func (x *exchange) newWriter(headers http.Header) *writer {
	return &writer{ResponseWriter: x.w, x: x, controller: http.NewResponseController(x.w), headers: headers}
}

// WriteHeader begins the answer.
func (w *writer) WriteHeader(status int) {
	w.x.record.status = status
	h := w.ResponseWriter.Header()
	for name := range h {
		switch name {
		case "X-Request-Id", "Ratelimit", "RateLimit", "Ratelimit-Policy", "RateLimit-Policy":
			// Ours, where the target has none of its own.
			if len(w.headers[http.CanonicalHeaderKey(name)]) == 0 {
				continue
			}
		}
		delete(h, name)
	}
	maps.Copy(h, w.headers)
	if _, typed := h["Content-Type"]; !typed {
		h["Content-Type"] = nil // nobody is to guess: what the target did not name stays unnamed
	}
	if w.x.sending.unfinished() && w.x.r.ProtoMajor == 1 {
		h["Connection"] = closing
	}
	w.deadline()
	w.ResponseWriter.WriteHeader(status)
}

// closing ends an HTTP/1 connection whose request is answered before it was read whole: nobody could tell
// where the next one begins.
var closing = []string{"close"}

// Write sends a part of the body.
func (w *writer) Write(b []byte) (int, error) {
	w.deadline()
	n, err := w.ResponseWriter.Write(b)
	w.x.record.bytesOut += int64(n)
	return n, err
}

// flush sends what is buffered. The caller then has no deadline until there is more to take: an HTTP/2
// stream would be ended by one while it waits.
func (w *writer) flush() error {
	err := w.controller.Flush()
	if w.x.r.ProtoMajor != 1 {
		_ = w.controller.SetWriteDeadline(time.Time{})
	}
	return err
}

// deadline gives the caller its time to take what comes next. On HTTP/1 the server does.
func (w *writer) deadline() {
	if w.x.r.ProtoMajor == 1 {
		return
	}
	_ = w.controller.SetWriteDeadline(time.Now().Add(w.x.h.o.Stall)) // a connection that is gone says so on Write
}
