package forward

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/proxy/internal/stream"
	"github.com/lectern-dev/lectern/proxy/internal/template"
	"github.com/lectern-dev/lectern/shared/http/apierr"
)

// heldBodies bounds the memory of the bodies with placeholders, and the time to read each.
type heldBodies struct {
	maxBytes int64         // length of one body
	memory   int64         // bytes of all bodies together
	timeout  time.Duration // to read one body
	taken    *usage
	// examining bounds how many bodies are examined at a time: the memory for the names of a JSON body is many times the body.
	examining chan struct{}
}

func newHeldBodies(maxBytes, memory int64, timeout time.Duration) *heldBodies {
	return &heldBodies{
		maxBytes: maxBytes, memory: memory, timeout: timeout, taken: newUsage(), examining: make(chan struct{}, maxExamining),
	}
}

// maxExamining is how many bodies are examined at a time. Each keeps a processor busy.
const maxExamining = 2

// shares returns the bounds that a body counts against. One endpoint may take half of the memory and one client a
// quarter, so that neither starves the others.
func (b *heldBodies) shares(endpoint, client string) []share {
	shares := []share{{holder{kind: ofAll}, b.memory}, {holder{ofEndpoint, endpoint}, b.memory / 2}}
	if client != "" {
		shares = append(shares, share{holder{ofClient, client}, b.memory / 4})
	}
	return shares
}

// heldBody is a request's body in memory.
type heldBody struct {
	of     *heldBodies
	shares []share
	text   []byte
	parts  []template.Part // of text
	survey template.Survey
	// received is the length of the body as the caller sent it, in bytes.
	received    int64
	contentType string // replaces the caller's; "" keeps it
}

// hold reads the body of a request into memory. The memory counts against the endpoint, and against the client unless
// that is "". The caller must release it.
func (b *heldBodies) hold(r *http.Request, endpoint, client string) (*heldBody, error) {
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
		err = held.examine()
	}
	if err != nil {
		held.release()
		return nil, err
	}
	return held, nil
}

// examine checks the body against its type, and finds its placeholders.
func (h *heldBody) examine() (err error) {
	h.of.examining <- struct{}{}
	defer func() { <-h.of.examining }()
	if h.survey, err = template.Examine(h.parts, h.text); err != nil {
		return unfit(err)
	}
	return nil
}

// bodyMedia returns what a request's headers say about its body, or the boundary of its parts.
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

// read reads a body to its end. The server bounds each read, so a body that trickles ends one read after the deadline
// at the latest.
func (h *heldBody) read(body io.Reader) error {
	deadline := time.Now().Add(h.of.timeout)
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
			return tooSlow(h.of.timeout)
		}
	}
}

// framing is by how many bytes a reframed body may exceed the largest one. The caller's boundary may be shorter than ours.
const framing = 64 << 10

// Write appends to the text.
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

// grow doubles the capacity for the text, up to one byte more than the largest body with its framing. It counts the memory before it
// allocates.
func (h *heldBody) grow() error {
	const least = 64 << 10
	had := int64(cap(h.text))
	size := min(max(2*had, least), h.of.maxBytes+framing+1)
	if full, ok := h.of.taken.take(size, h.shares...); !ok {
		switch full {
		case ofEndpoint:
			return tooMany("too many bodies for this endpoint wait for their values", time.Second)
		case ofClient:
			return tooMany("too many bodies of this client address wait for their values", time.Second)
		}
		return apierr.NotAvailable(errMemory)
	}
	h.text = append(make([]byte, 0, size), h.text...)
	h.of.taken.give(had, h.shares...)
	return nil
}

// length returns the length in bytes of the body as the caller sent it, 0 for nil.
func (h *heldBody) length() int64 {
	if h == nil {
		return 0
	}
	return h.received
}

// release returns the memory. It does nothing for nil.
func (h *heldBody) release() {
	if h == nil {
		return
	}
	h.of.taken.give(int64(cap(h.text)), h.shares...)
	h.text = nil
}

// filledBody is a held body whose placeholders are replaced with values.
type filledBody struct {
	text    []byte
	values  *template.Body
	length  int64
	framing int64 // by how much reframing made it longer
}

// fill returns the body with values inserted.
func (h *heldBody) fill(values map[string][]byte) *filledBody {
	b := template.NewBody(h.parts, values)
	return &filledBody{text: h.text, values: b, length: h.survey.Size(b), framing: int64(len(h.text)) - h.received}
}

// open returns the body from its beginning. It can be opened again for another try.
func (f *filledBody) open() io.ReadCloser {
	values := *f.values
	values.Reset()
	return stream.NewReader(bytes.NewReader(f.text), &values)
}
