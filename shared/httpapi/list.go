package httpapi

import (
	"iter"
	"net/http"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/lectern-dev/lectern/shared/pagelist"
)

const (
	typeJSON   = "application/json"
	typeNDJSON = "application/x-ndjson"
)

// ListFormat returns the format in which r asks for a list. It is NDJSON if its Accept lists that and does not prefer
// JSON, or else JSON.
func ListFormat(r *http.Request) pagelist.Format {
	accepted := r.Header["Accept"]
	ndjson, _ := Weight(accepted, typeNDJSON)
	json, _ := Weight(accepted, typeJSON)
	if ndjson > 0 && ndjson >= json {
		return pagelist.NDJSON
	}
	return pagelist.JSON
}

// WriteList answers with a page of a list. It sends the next cursor as Link and X-Next-Cursor. It sends a list of one
// chunk with an ETag, and longer ones chunk by chunk as they are read. It closes list.
func WriteList(w http.ResponseWriter, r *http.Request, q *Query, b Binding, list *pagelist.List) error {
	defer list.Close()
	cursor := ""
	if next := list.Next(); next != nil {
		cursor = b.Cursor(*next)
		w.Header()["X-Next-Cursor"] = []string{cursor}
		linkNext(w, r, q, cursor)
	}
	if body, whole := list.Whole(); whole {
		return WriteBody(w, r, listType(r), body, cursor)
	}
	return writePieces(w, r, listType(r), list.Chunks())
}

// WriteFeed answers with a page of a list to which records are added at its end. Every answer has the cursor of next,
// and a Link if more records can be read now. There is no ETag. It closes list.
func WriteFeed(w http.ResponseWriter, r *http.Request, q *Query, b Binding, list *pagelist.List, next pagelist.Position, more bool) error {
	defer list.Close()
	cursor := b.Cursor(next)
	w.Header()["X-Next-Cursor"] = []string{cursor}
	if more {
		linkNext(w, r, q, cursor)
	}
	return writePieces(w, r, listType(r), list.Chunks())
}

// linkNext sets Link to the next page.
func linkNext(w http.ResponseWriter, r *http.Request, q *Query, cursor string) {
	w.Header()["Link"] = []string{"<" + InfoFrom(r.Context()).BaseURL() + r.URL.EscapedPath() + "?" +
		q.encodeWith("cursor", cursor) + `>; rel="next"`}
}

// listType returns the Content-Type of the list that r asks for.
func listType(r *http.Request) string {
	if ListFormat(r) == pagelist.NDJSON {
		return typeNDJSON
	}
	return typeJSON
}

// WritePieces answers 200 with a JSON body of unknown size, piece by piece. If the client has the body already, it
// answers 304. version identifies the body: equal versions mean equal bodies.
func WritePieces(w http.ResponseWriter, r *http.Request, version []byte, pieces iter.Seq2[[]byte, error]) error {
	tag := etag(version, "")
	w.Header().Set("Etag", tag)
	if noneMatch(r.Header["If-None-Match"], tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return writePieces(w, r, typeJSON, pieces)
}

func writePieces(w http.ResponseWriter, r *http.Request, contentType string, pieces iter.Seq2[[]byte, error]) error {
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
