package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/proxy/internal/stream"
	"github.com/lectern-dev/lectern/proxy/internal/template"
	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/limits"
)

// heldBodies limits the memory of all bodies with placeholders, the length of each body, and the time to read each
// body.
type heldBodies struct {
	maxBytes int64 // length of one body
	memory   int64 // bytes of all bodies together
	taken    limits.Shares
	// examining bounds how many bodies are examined at a time. The names of a JSON body take many times the memory of
	// the body.
	examining chan struct{}
}

func newHeldBodies(maxBytes, memory int64) *heldBodies {
	return &heldBodies{
		maxBytes: maxBytes, memory: memory, examining: make(chan struct{}, maxExamining),
	}
}

// bodyTimeout is how long a body with placeholders may take to arrive. It is enough for the largest body at 170 KB a second.
const bodyTimeout = time.Minute

// maxExamining is how many bodies are examined at a time. Each examination keeps a processor busy.
const maxExamining = 2

// shares returns the memory limits that a body counts against. All bodies together may take the whole memory, one
// endpoint half of the memory, and one client a quarter. The zero client has no limit of its own.
func (b *heldBodies) shares(endpoint, client limits.Holder) []limits.Share {
	return []limits.Share{{Holder: limits.Everything, Most: b.memory}, {Holder: endpoint, Most: b.memory / 2}, {Holder: client, Most: b.memory / 4}}
}

// heldBody is a request's body with placeholders, which the proxy has read into memory.
type heldBody struct {
	of     *heldBodies
	shares []limits.Share // of all, the endpoint and the client
	text   []byte
	parts  []template.Part // of text
	survey template.Survey
	// received is the length of the body as the caller sent it, in bytes.
	received    int64
	contentType string // replaces the caller's; "" keeps it
}

// hold reads the body of a request into memory, and finds its placeholders. The memory counts against the endpoint, and
// against the client unless client is the zero Holder. The caller must release the result. With an error, there is nothing to
// release.
func (b *heldBodies) hold(r *http.Request, endpoint, client limits.Holder) (*heldBody, error) {
	media, boundary, err := bodyMedia(r.Header)
	if err != nil {
		return nil, err
	}
	if r.ContentLength > b.maxBytes {
		return nil, tooLarge(b.maxBytes)
	}
	held := &heldBody{of: b, shares: b.shares(endpoint, client)}
	err = held.read(r.Body)
	if err == nil && boundary != "" {
		err = held.reframe(boundary)
	}
	if err == nil && boundary == "" {
		held.parts = []template.Part{{Media: media, Length: len(held.text)}}
	}
	if err == nil {
		err = held.examine(r.Context())
	}
	if err != nil {
		held.release()
		return nil, err
	}
	return held, nil
}

// examine checks the body against its type, and finds its placeholders. examine waits while maxExamining other bodies
// are examined. The error is the error of ctx if ctx ends first.
func (h *heldBody) examine(ctx context.Context) (err error) {
	select {
	case h.of.examining <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-h.of.examining }()
	if h.survey, err = template.Examine(h.parts, h.text); err != nil {
		return unfit(err)
	}
	return nil
}

// bodyMedia returns the Media that a request's headers declare for the body, or the boundary of a multipart/form-data
// body. The error refuses a body that values cannot be inserted into.
func bodyMedia(h http.Header) (media template.Media, boundary string, err error) {
	coding := strings.TrimSpace(strings.Join(h["Content-Encoding"], ","))
	if coding != "" && !strings.EqualFold(coding, "identity") {
		return media, "", apierr.New(apierr.UnsupportedMediaType, "Values cannot be put into a body that is compressed. Send it without Content-Encoding, or without X-Use-Body-Templating.")
	}
	if types := h["Content-Type"]; len(types) == 1 {
		media, known := template.MediaOf(types[0])
		if boundary = boundaryOf(types[0]); known || boundary != "" {
			return media, boundary, nil
		}
	}
	return media, "", apierr.New(apierr.UnsupportedMediaType, "Values can be put into bodies of text/*, JSON, XML, application/x-www-form-urlencoded and multipart/form-data in UTF-8; the Content-Type has to say which. Send others without X-Use-Body-Templating.")
}

// read reads a body to its end into h.text, and refuses a body over a limit of heldBodies. The server bounds the time
// of each read, so read refuses a slow body at most one read after the deadline.
func (h *heldBody) read(body io.Reader) error {
	deadline := time.Now().Add(bodyTimeout)
	for {
		if len(h.text) == cap(h.text) {
			if err := h.grow(); err != nil {
				return err
			}
		}
		n, err := body.Read(h.text[len(h.text):cap(h.text)])
		h.text = h.text[:len(h.text)+n]
		h.received = int64(len(h.text))
		switch {
		case h.received > h.of.maxBytes:
			return tooLarge(h.of.maxBytes)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return bodyFault(err)
		case time.Now().After(deadline):
			return tooSlow()
		}
	}
}

// framing is the number of bytes by which reframe may make a body longer than the limit. The boundary of the proxy may
// be longer than the boundary of the caller.
const framing = 64 << 10

// Write appends b to the text of the body. The error is a refusal if the body is too large, or if no memory is left.
func (h *heldBody) Write(b []byte) (int, error) {
	if int64(len(h.text)+len(b)) > h.of.maxBytes+framing {
		return 0, tooLarge(h.of.maxBytes)
	}
	for cap(h.text)-len(h.text) < len(b) {
		if err := h.grow(); err != nil {
			return 0, err
		}
	}
	h.text = append(h.text, b...)
	return len(b), nil
}

// grow doubles the capacity for the text, from 64 KiB to one byte more than the largest body with its framing. grow
// counts the memory before the allocation, and refuses the body if a limit is reached.
func (h *heldBody) grow() error {
	const least = 64 << 10
	had := int64(cap(h.text))
	size := min(max(2*had, least), h.of.maxBytes+framing+1)
	switch err := h.of.taken.Take(size, h.shares...); {
	case err == nil:
	case errors.Is(err, limits.Over{Holder: limits.Everything}):
		return apierr.NotAvailable(errMemory)
	case errors.Is(err, limits.Over{Holder: h.shares[1].Holder}):
		return tooMany("too many bodies for this endpoint wait for their values", time.Second)
	default:
		return tooMany("too many bodies of this client address wait for their values", time.Second)
	}
	h.text = append(make([]byte, 0, size), h.text...)
	h.of.taken.Give(had, h.shares...)
	return nil
}

// length returns the length in bytes of the body as the caller sent it, 0 for nil.
func (h *heldBody) length() int64 {
	if h == nil {
		return 0
	}
	return h.received
}

// release drops the text, and returns its memory to the limits of heldBodies. For a nil heldBody, release does nothing.
func (h *heldBody) release() {
	if h == nil {
		return
	}
	h.of.taken.Give(int64(cap(h.text)), h.shares...)
	h.text = nil
}

// filledBody is a held body whose placeholders are replaced with values.
type filledBody struct {
	text    []byte
	values  *template.Body
	length  int64
	framing int64 // by how much reframing made it longer
}

// fill returns the body with each placeholder replaced by the value of its id.
func (h *heldBody) fill(values map[string][]byte) *filledBody {
	b := template.NewBody(h.parts, values)
	return &filledBody{text: h.text, values: b, length: h.survey.Size(b), framing: int64(len(h.text)) - h.received}
}

// open returns a reader of the body from its beginning. The transport calls open again to send the request another
// time.
func (f *filledBody) open() io.ReadCloser {
	values := *f.values
	values.Reset()
	return stream.NewReader(bytes.NewReader(f.text), &values)
}
