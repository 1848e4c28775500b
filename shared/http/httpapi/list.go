package httpapi

import (
	"bytes"
	"iter"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/lectern-dev/lectern/shared/postgres/changed"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
)

const (
	typeJSON   = "application/json"
	typeNDJSON = "application/x-ndjson"
)

// ListRequest is a request for a page of a list: the list with its filters, and the page that the client asks for.
type ListRequest struct {
	Binding            // the list that cursors belong to
	Page    lists.Page // from the parameters cursor and limit, and the header Accept

	query *Query
	tag   string // the ETag, if [ListRequest.Unchanged] has made one
}

// List returns the page of a list that r asks for: at most limit records, up to end. The page begins after the cursor
// of q, or after start without a cursor. The error is the first fault of any parameter that q has read.
func (q *Query) List(r *http.Request, b Binding, start, end lists.Position, limit int) (ListRequest, error) {
	page := lists.Page{After: b.position(q, start), End: end, Limit: limit, Format: listFormat(r)}
	return ListRequest{Binding: b, Page: page, query: q}, q.Err()
}

// listFormat returns the format in which r asks for a list: NDJSON if the header Accept lists NDJSON and does not
// prefer JSON, else JSON.
func listFormat(r *http.Request) lists.Format {
	accepted := r.Header["Accept"]
	ndjson, _ := Weight(accepted, typeNDJSON)
	json, _ := Weight(accepted, typeJSON)
	if ndjson > 0 && ndjson >= json {
		return lists.NDJSON
	}
	return lists.JSON
}

// ChangedAfter returns the parameter "changed_after", the number of a change, and adds it to the filters of b. Without
// the parameter, ChangedAfter returns [changed.All]. Any other value is a fault, which [Query.Err] returns.
func (q *Query) ChangedAfter(b *Binding) int64 {
	const name = "changed_after"
	after := q.Int(name, changed.All, 0, math.MaxInt)
	if q.Has(name) {
		b.Filters = maps.Clone(b.Filters)
		if b.Filters == nil {
			b.Filters = map[string]string{}
		}
		b.Filters[name] = strconv.Itoa(after)
	}
	return int64(after)
}

// Unchanged sets the header X-Last-Seq to newest, the number of the newest change of the records in the list. If the
// number is not 0, the answer has an ETag of the number and the build, whatever the length of the page. If the client
// has that answer already, Unchanged answers 304 and returns true. The caller reads newest before the list.
func (l *ListRequest) Unchanged(w http.ResponseWriter, r *http.Request, newest int64, build string) bool {
	w.Header()["X-Last-Seq"] = []string{strconv.FormatInt(newest, 10)}
	if newest == 0 {
		return false
	}
	l.tag = etag([]byte(strconv.FormatInt(newest, 10)+" "+build+" "+l.contentType()), r.URL.RequestURI())
	if slices.Contains(r.Header["If-None-Match"], "*") {
		return false // Write knows whether there is such a list
	}
	return unchanged(w, r, l.tag)
}

// Write answers with the page and closes list. If there is a next page, the headers Link and X-Next-Cursor have its
// cursor. A page of one chunk has an ETag, and may be answered with 304, as any page after [ListRequest.Unchanged]. A
// longer page is sent chunk by chunk, as the chunks are read.
func (l ListRequest) Write(w http.ResponseWriter, r *http.Request, list *lists.List) error {
	defer list.Close()
	if l.tag != "" && unchanged(w, r, l.tag) {
		return nil
	}
	if body, whole := list.Whole(); whole {
		return l.writeWhole(w, r, body, list.Next())
	}
	if next := list.Next(); next != nil {
		l.next(w, r, *next, true)
	}
	return writePieces(w, r, l.contentType(), list.Chunks(), lists.Memory)
}

// writeWhole answers with a page whose body is in memory. next is where the next page begins, nil on the last page.
func (l ListRequest) writeWhole(w http.ResponseWriter, r *http.Request, body []byte, next *lists.Position) error {
	cursor := ""
	if next != nil {
		cursor = l.next(w, r, *next, true)
	}
	if l.tag != "" {
		return writeWhole(w, r, l.contentType(), body)
	}
	return WriteBody(w, r, l.contentType(), body, cursor)
}

// WriteRecords answers with a page of records that are in memory, each of them JSON. next is where the next page begins, nil
// on the last page.
func (l ListRequest) WriteRecords(w http.ResponseWriter, r *http.Request, records [][]byte, next *lists.Position) error {
	if l.Page.Format == lists.NDJSON {
		return l.writeWhole(w, r, bytes.Join(append(records, nil), []byte("\n")), next)
	}
	return l.writeWhole(w, r, slices.Concat([]byte("["), bytes.Join(records, []byte(",")), []byte("]")), next)
}

// WriteFeed answers with a page of a feed, a list to which records are added at its end. The answer has the cursor of
// next, and no ETag. If more is set, because more records can be read now, the answer also has a Link. memory is how
// many bytes the process holds for the body.
func (l ListRequest) WriteFeed(w http.ResponseWriter, r *http.Request, body iter.Seq2[[]byte, error], memory int64, next lists.Position, more bool) error {
	l.next(w, r, next, more)
	return writePieces(w, r, l.contentType(), body, memory)
}

// next sets the headers of the page that begins after p, and returns that page's cursor. If link is false, next sets no
// Link.
func (l ListRequest) next(w http.ResponseWriter, r *http.Request, p lists.Position, link bool) string {
	cursor := l.Cursor(p)
	w.Header()["X-Next-Cursor"] = []string{cursor}
	if link {
		w.Header()["Link"] = []string{"<" + InfoFrom(r.Context()).BaseURL() + r.URL.EscapedPath() + "?" +
			l.query.encodeWith("cursor", cursor) + `>; rel="next"`}
	}
	return cursor
}

func (l ListRequest) contentType() string {
	if l.Page.Format == lists.NDJSON {
		return typeNDJSON
	}
	return typeJSON
}

// WritePieces answers 200 with a JSON body of unknown size, piece by piece. If the client has the body already,
// WritePieces answers 304. version identifies the body: equal versions mean equal bodies.
func WritePieces(w http.ResponseWriter, r *http.Request, version []byte, pieces iter.Seq2[[]byte, error]) error {
	if unchanged(w, r, etag(version, "")) {
		return nil
	}
	return writePieces(w, r, typeJSON, pieces, 0)
}

// writePieces answers 200 with a body, piece by piece. memory is how many bytes the process holds for the body. The
// error is that of [Info.Hold], the first error of pieces, or wraps [ErrNotTaken].
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

// etag returns the weak entity tag of a body and of extra, which is not a part of the body. body may be the body's
// version.
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
