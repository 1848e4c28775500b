package forward

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/lectern-dev/lectern/proxy/internal/stream"
	"github.com/lectern-dev/lectern/proxy/internal/template"
	"github.com/lectern-dev/lectern/shared/apierr"
)

// heldBodies bounds the memory of the bodies that values are put into.
type heldBodies struct {
	most   int64 // bytes of one body
	memory int64 // bytes of all bodies together
	taken  atomic.Int64
}

// heldBody is a request's body in memory.
type heldBody struct {
	of     *heldBodies
	text   []byte
	syntax template.Syntax
	survey template.Survey
}

// hold reads the body of a request into memory. The caller releases it.
func (b *heldBodies) hold(r *http.Request) (*heldBody, error) {
	syntax, err := bodySyntax(r.Header)
	if err != nil {
		return nil, err
	}
	if r.ContentLength > b.most {
		return nil, tooLarge(b.most)
	}
	held := &heldBody{of: b, syntax: syntax}
	if err := held.read(r.Body); err != nil {
		held.release()
		return nil, err
	}
	held.survey = template.Examine(syntax, held.text)
	return held, nil
}

// bodySyntax returns what a body is written in, by its headers.
func bodySyntax(h http.Header) (template.Syntax, error) {
	coding := strings.TrimSpace(strings.Join(h["Content-Encoding"], ","))
	if coding != "" && !strings.EqualFold(coding, "identity") {
		return 0, apierr.New(apierr.UnsupportedMediaType, "Values cannot be put into a body that is compressed. Send it without Content-Encoding, or without X-Use-Body-Templating.")
	}
	if types := h["Content-Type"]; len(types) == 1 {
		if syntax, known := template.SyntaxOf(types[0]); known {
			return syntax, nil
		}
	}
	return 0, apierr.New(apierr.UnsupportedMediaType, "Values can be put into bodies of text/*, JSON, XML and application/x-www-form-urlencoded; the Content-Type has to say which. Send others without X-Use-Body-Templating.")
}

// read reads a body to its end.
func (h *heldBody) read(body io.Reader) error {
	for {
		if len(h.text) == cap(h.text) {
			if err := h.grow(); err != nil {
				return err
			}
		}
		n, err := body.Read(h.text[len(h.text):cap(h.text)])
		h.text = h.text[:len(h.text)+n]
		switch {
		case h.length() > h.of.most:
			return tooLarge(h.of.most)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return bodyFault(err)
		}
	}
}

// grow doubles the room for the text, up to one byte more than the largest body. It takes the memory before it
// allocates.
func (h *heldBody) grow() error {
	const least = 64 << 10
	had := int64(cap(h.text))
	size := min(max(2*had, least), h.of.most+1)
	if h.of.taken.Add(size) > h.of.memory {
		h.of.taken.Add(-size)
		return apierr.NotAvailable(errMemory)
	}
	h.text = append(make([]byte, 0, size), h.text...)
	h.of.taken.Add(-had)
	return nil
}

// length returns the body's length in bytes, 0 for nil.
func (h *heldBody) length() int64 {
	if h == nil {
		return 0
	}
	return int64(len(h.text))
}

// release gives the memory back. It does nothing for nil.
func (h *heldBody) release() {
	if h == nil {
		return
	}
	h.of.taken.Add(-int64(cap(h.text)))
	h.text = nil
}

// filledBody is a held body with values in the place of its placeholders.
type filledBody struct {
	text   []byte
	values *template.Body
	length int64
}

// fill returns the body with values put in.
func (h *heldBody) fill(values map[string][]byte) *filledBody {
	b := template.NewBody(h.syntax, values)
	return &filledBody{text: h.text, values: b, length: h.survey.Size(b)}
}

// open returns the body from its beginning. It can be opened again for another try.
func (f *filledBody) open() io.ReadCloser {
	values := *f.values
	values.Reset()
	return stream.NewReader(bytes.NewReader(f.text), &values)
}
