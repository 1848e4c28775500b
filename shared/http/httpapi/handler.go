// Package httpapi owns how an operation reads its request and writes its answer. The package has handlers that return
// errors, parameters whose errors name the fault, cursors, and lists in JSON or NDJSON that stream. The package does
// not know the records.
package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/lectern-dev/lectern/shared/apierr"
)

// HandlerFunc serves a request, or returns an error for the client. HandlerFunc returns an error before it writes, or
// the error of a function of this package that writes, such as [WriteBody]. An error after the body has begun ends the
// connection.
type HandlerFunc func(w http.ResponseWriter, r *http.Request) error

// ErrNotTaken is wrapped by the errors of functions that write a body, such as [ListRequest.Write] and [WriteBody], if
// a write failed. The client has disconnected, or did not read the answer in time.
var ErrNotTaken = errors.New("the client did not take the answer")

// ServeHTTP makes a HandlerFunc an http.Handler: it answers an error that the function returns by [WriteError].
func (h HandlerFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h(w, r); err != nil {
		WriteError(w, r, err)
	}
}

// WriteError answers r with err, and logs err if it is a fault of the service. If the body has begun, or err shows that
// the client disconnected, WriteError panics with [http.ErrAbortHandler] instead. The server then ends the connection,
// so that no client mistakes half an answer for a complete one.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	info := InfoFrom(r.Context())
	info.Err = err
	if errors.Is(err, ErrNotTaken) {
		panic(http.ErrAbortHandler)
	}
	// An [apierr.Error] is always sent. A handler that stops reading a body early cancels its own reads, which looks
	// as if the client had disconnected.
	if _, answer := errors.AsType[*apierr.Error](err); !answer && r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler)
	}
	e := apierr.From(err)
	if e.Status() >= http.StatusInternalServerError && e.Status() != http.StatusNotImplemented { // a client asked for that
		info.Logger.LogAttrs(r.Context(), slog.LevelError, "request failed",
			slog.String("route", info.Route), slog.String("code", string(e.Code())), slog.Any("error", err))
	}
	if info.started {
		panic(http.ErrAbortHandler)
	}
	if info.ProjectID != "" && !e.Has("projectId") {
		e = e.With("projectId", info.ProjectID)
	}
	h := w.Header()
	// Headers that the handler set for a success do not describe this body.
	for _, name := range []string{"Etag", "Link", "X-Next-Cursor", "X-Last-Seq", "Content-Length", "Last-Modified"} {
		h.Del(name)
	}
	if info.Refusing != nil && info.Refusing(w, r) {
		return
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if base := info.BaseURL(); base != "" {
		h.Set("Link", "<"+base+"/docs/errors#"+string(e.Code())+`>; rel="help"`)
	}
	if e.Allow() != "" {
		h.Set("Allow", e.Allow())
	}
	if e.Code() == apierr.Unauthorized && h.Get("WWW-Authenticate") == "" {
		h.Set("WWW-Authenticate", "ApiKey")
	}
	if d := e.RetryAfter(); d > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(d.Seconds()))))
	}
	body, _ := json.Marshal(e) // an Error always marshals
	body = append(body, '\n')
	h.Set("Content-Length", strconv.Itoa(len(body)))
	info.started = true
	w.WriteHeader(e.Status())
	_, _ = w.Write(body) // the client may have disconnected
}

// Methods returns a handler that serves GET, HEAD, POST, PUT, PATCH and DELETE if byMethod has them. Any other method
// gets a 405 with Allow. The handler of GET also serves HEAD, unless byMethod has HEAD.
func Methods(byMethod map[string]http.Handler) http.Handler {
	handlers := make(map[string]http.Handler, len(byMethod)+1)
	var allowed []string
	for _, m := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		h, ok := byMethod[m]
		if get, has := byMethod[http.MethodGet]; !ok && m == http.MethodHead && has {
			h, ok = get, true
		}
		if ok {
			handlers[m] = h
			allowed = append(allowed, m)
		}
	}
	return HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		h, ok := handlers[r.Method]
		if !ok {
			return apierr.BadMethod(r.Method, allowed...)
		}
		h.ServeHTTP(w, r)
		return nil
	})
}

// WriteBody answers 200 with a whole body. The ETag is made of the body and of extra, such as the next cursor, which is
// not in the body. If the client has the body already, WriteBody answers 304. The tag is weak (RFC 9110, section
// 8.8.1), because compression changes the bytes and not their meaning.
func WriteBody(w http.ResponseWriter, r *http.Request, contentType string, body []byte, extra string) error {
	if unchanged(w, r, etag(body, extra)) {
		return nil
	}
	return writeWhole(w, r, contentType, body)
}

// WriteVersioned answers 200 with the JSON that read returns. The ETag is made of version and of the path with its
// query; the caller makes sure that equal tags mean equal answers. If the client has the answer already, WriteVersioned
// answers 304 and does not call read.
func WriteVersioned(w http.ResponseWriter, r *http.Request, version string, read func() ([]byte, error)) error {
	if unchanged(w, r, etag([]byte(version), r.URL.RequestURI())) {
		return nil
	}
	body, err := read()
	if err != nil {
		return err
	}
	return writeWhole(w, r, typeJSON, body)
}

// unchanged sets the header ETag to tag. If the client's If-None-Match has tag or *, unchanged answers 304 and returns
// true.
func unchanged(w http.ResponseWriter, r *http.Request, tag string) bool {
	w.Header().Set("Etag", tag)
	if !noneMatch(r.Header["If-None-Match"], tag) {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

// writeWhole answers 200 with a whole body of known size, or with the headers alone to HEAD. The error is that of
// [Info.Hold], or wraps [ErrNotTaken].
func writeWhole(w http.ResponseWriter, r *http.Request, contentType string, body []byte) error {
	h := w.Header()
	if r.Method != http.MethodHead {
		if err := hold(r, int64(len(body))); err != nil {
			return err
		}
	}
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	InfoFrom(r.Context()).started = true
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	return write(w, body)
}

// smallBody is the size in bytes up to which a body does not count in [Info.Hold], because the system's buffers take
// the body.
const smallBody = 64 << 10

// hold counts bytes of a body by [Info.Hold], unless the body is at most smallBody. The error is the answer to the
// request.
func hold(r *http.Request, bytes int64) error {
	if bytes <= smallBody {
		return nil
	}
	return InfoFrom(r.Context()).Hold(bytes)
}

// write writes a part of a body to the client. The error wraps [ErrNotTaken].
func write(w http.ResponseWriter, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("%w: %w", ErrNotTaken, err)
	}
	return nil
}

// noneMatch reports whether the client's If-None-Match headers have tag or * (RFC 9110, section 13.1.2: weak
// comparison).
func noneMatch(headers []string, tag string) bool {
	for _, header := range headers {
		for candidate := range strings.SplitSeq(header, ",") {
			candidate = strings.TrimSpace(candidate)
			if candidate == "*" || strings.TrimPrefix(candidate, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}
