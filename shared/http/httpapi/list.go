package httpapi

import (
	"iter"
	"net/http"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/lectern-dev/lectern/shared/http/pagelist"
)

const (
	typeJSON   = "application/json"
	typeNDJSON = "application/x-ndjson"
)

// ListRequest is a request for a page of a list: the list with its filters, and which part of it the client asks for.
type ListRequest struct {
	Binding               // the list that cursors belong to
	Page    pagelist.Page // from the parameters cursor and limit, and the header Accept

	query *Query
}

// List reads which page of a list r asks for, from start to end, of at most limit records. It returns the first fault of
// any parameter that q has read.
func (q *Query) List(r *http.Request, b Binding, start, end pagelist.Position, limit int) (ListRequest, error) {
	page := pagelist.Page{After: b.position(q, start), End: end, Limit: limit, Format: listFormat(r)}
	return ListRequest{b, page, q}, q.Err()
}

// listFormat returns the format in which r asks for a list. It is NDJSON if its Accept lists that and does not prefer
// JSON, or else JSON.
func listFormat(r *http.Request) pagelist.Format {
	accepted := r.Header["Accept"]
	ndjson, _ := Weight(accepted, typeNDJSON)
	json, _ := Weight(accepted, typeJSON)
	if ndjson > 0 && ndjson >= json {
		return pagelist.NDJSON
	}
	return pagelist.JSON
}

// Write answers with the page. It sends the next cursor as Link and X-Next-Cursor. It sends a list of one chunk with an
// ETag, and longer ones chunk by chunk as they are read. It closes list.
func (l ListRequest) Write(w http.ResponseWriter, r *http.Request, list *pagelist.List) error {
	defer list.Close()
	cursor := ""
	if next := list.Next(); next != nil {
		cursor = l.next(w, r, *next, true)
	}
	if body, whole := list.Whole(); whole {
		return WriteBody(w, r, l.contentType(), body, cursor)
	}
	return writePieces(w, r, l.contentType(), list.Chunks(), pagelist.Memory)
}

// WriteFeed answers with a page of a list to which records are added at its end. Every answer has the cursor of next,
// and a Link if more records can be read now. There is no ETag. The process holds memory bytes for the body.
func (l ListRequest) WriteFeed(w http.ResponseWriter, r *http.Request, body iter.Seq2[[]byte, error], memory int64, next pagelist.Position, more bool) error {
	l.next(w, r, next, more)
	return writePieces(w, r, l.contentType(), body, memory)
}

// next sets the headers of the next page, which is after p, and returns its cursor.
func (l ListRequest) next(w http.ResponseWriter, r *http.Request, p pagelist.Position, link bool) string {
	cursor := l.Cursor(p)
	w.Header()["X-Next-Cursor"] = []string{cursor}
	if link {
		w.Header()["Link"] = []string{"<" + InfoFrom(r.Context()).BaseURL() + r.URL.EscapedPath() + "?" +
			l.query.encodeWith("cursor", cursor) + `>; rel="next"`}
	}
	return cursor
}

func (l ListRequest) contentType() string {
	if l.Page.Format == pagelist.NDJSON {
		return typeNDJSON
	}
	return typeJSON
}

// WritePieces answers 200 with a JSON body of unknown size, piece by piece. If the client has the body already, it
// answers 304. version identifies the body: equal versions mean equal bodies.
func WritePieces(w http.ResponseWriter, r *http.Request, version []byte, pieces iter.Seq2[[]byte, error]) error {
	if unchanged(w, r, etag(version, "")) {
		return nil
	}
	return writePieces(w, r, typeJSON, pieces, 0)
}

// writePieces answers 200 with a body, for which the process holds memory bytes.
func writePieces(w http.ResponseWriter, r *http.Request, contentType string, pieces iter.Seq2[[]byte, error], memory int64) error {
	if err := hold(r, memory); err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	InfoFrom(r.Context()).started = true
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	for piece, err := range pieces {
		if err != nil {
			return err
		}
		if err := write(w, piece); err != nil {
			return err
		}
	}
	return nil
}

// etag returns the weak tag of a body, or of its version, and of extra, which is not a part of the body.
func etag(body []byte, extra string) string {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.Write(body) // never fails
	_, _ = d.WriteString("\x00")
	_, _ = d.WriteString(extra)
	tag := append(make([]byte, 0, 20), `W/"`...)
	tag = strconv.AppendUint(tag, d.Sum64(), 36)
	return string(append(tag, '"'))
}
