package forward

import (
	"maps"
	"net/http"
	"time"
)

// writer takes the target's answer from ReverseProxy. Until the answer begins, a writer keeps the target's headers
// apart from the headers of the proxy's own answers.
type writer struct {
	http.ResponseWriter
	request    *http.Request
	stall      time.Duration
	record     *record
	controller *http.ResponseController
	header     http.Header // of the target
	begun      bool
}

func newWriter(w http.ResponseWriter, r *http.Request, stall time.Duration, rec *record) *writer {
	return &writer{
		ResponseWriter: w, request: r, stall: stall, record: rec,
		controller: http.NewResponseController(w), header: http.Header{},
	}
}

// Header returns the headers of the target's answer. After WriteHeader has begun the answer, Header returns the headers
// of the caller's answer, to which ReverseProxy adds the trailers.
func (w *writer) Header() http.Header {
	if w.begun {
		return w.ResponseWriter.Header()
	}
	return w.header
}

// WriteHeader begins the caller's answer with the target's headers. The proxy's request id and rate headers stay unless
// the target sends its own. WriteHeader drops interim answers (1xx), because the proxy does not search them for
// credentials.
func (w *writer) WriteHeader(status int) {
	if status < 200 || w.begun {
		return
	}
	w.begun, w.record.status = true, status
	h := w.ResponseWriter.Header()
	for name := range h {
		switch name {
		case "X-Request-Id", "Ratelimit", "RateLimit", "Ratelimit-Policy", "RateLimit-Policy":
			// Keeps our header if the target does not send it.
			if len(w.header[http.CanonicalHeaderKey(name)]) == 0 {
				continue
			}
		}
		delete(h, name)
	}
	maps.Copy(h, w.header)
	if _, typed := h["Content-Type"]; !typed {
		h["Content-Type"] = nil // net/http must not guess one
	}
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body to the caller, and counts its bytes in the record. For an HTTP/2 caller, Write
// restarts the deadline.
func (w *writer) Write(b []byte) (int, error) {
	w.extend()
	n, err := w.ResponseWriter.Write(b)
	w.record.bytesOut += int64(n)
	return n, err
}

// FlushError sends the buffered part of the answer. Until the next Write, an HTTP/2 caller then has no deadline,
// because a deadline would end the stream while the target is silent.
func (w *writer) FlushError() error {
	err := w.controller.Flush()
	if w.request.ProtoMajor != 1 {
		_ = w.controller.SetWriteDeadline(time.Time{}) // a closed stream needs none
	}
	return err
}

// extend resets the deadline by which an HTTP/2 caller must accept the next part. For HTTP/1, the server sets the
// deadline, and extend does nothing.
func (w *writer) extend() {
	if w.request.ProtoMajor != 1 {
		_ = w.controller.SetWriteDeadline(time.Now().Add(w.stall)) // Write reports a closed stream
	}
}
