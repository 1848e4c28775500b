package forward

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// deliver gives the answer to the caller: its headers at once, or together with a body that is there; a body that
// streams, as it comes. When that breaks off, so does the caller's connection: a part is not to look whole.
func (c *call) deliver(res *http.Response) {
	w := c.x.newWriter(res.Header)
	if len(res.Trailer) > 0 {
		names := make([]string, 0, len(res.Trailer))
		for name := range res.Trailer {
			names = append(names, name)
		}
		res.Header["Trailer"] = []string{strings.Join(names, ", ")}
	}
	w.WriteHeader(res.StatusCode)
	var err error
	switch {
	case c.whole != nil:
		_, err = w.Write(c.whole)
	case res.Body != http.NoBody:
		err = c.x.h.copies.copy(w, res.Body, c.flowing)
	}
	_ = res.Body.Close() // it was read to its end, or why not is known; now its trailers are there
	if err == nil {
		// The caller has its answer before the request is recorded. It also keeps net/http from finding a length
		// for a short body that trailers are to follow.
		err = w.flush()
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	for name, values := range res.Trailer {
		h[name] = values
	}
}

// copies passes bodies on, by buffers that are used again.
type copies struct{ buffers sync.Pool }

func newCopies() *copies {
	return &copies{sync.Pool{New: func() any { return new([32 << 10]byte) }}}
}

// copy passes a body on, each part as soon as it has come. Flowing tells whether a read does not wait; then parts
// go on together. Nil: that is not known.
func (c *copies) copy(w *writer, body io.Reader, flowing func() bool) error {
	buffer := c.buffers.Get().(*[32 << 10]byte)
	most := 0
	defer func() {
		clear(buffer[:most])
		c.buffers.Put(buffer)
	}()
	if err := w.flush(); err != nil { // the body may be long in coming
		return err
	}
	for {
		n, err := body.Read(buffer[:])
		for n > 0 && n < len(buffer) && err == nil && flowing != nil && flowing() {
			var more int
			more, err = body.Read(buffer[n:])
			n += more
		}
		most = max(most, n)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return err
			}
			if err := w.flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
