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

// ListFormat returns the format in which r asks for a list: NDJSON if its Accept lists that and does not prefer JSON,
// else JSON.
func ListFormat(r *http.Request) pagelist.Format {
	accepted := r.Header["Accept"]
	ndjson, _ := Weight(accepted, typeNDJSON)
	json, _ := Weight(accepted, typeJSON)
	if ndjson > 0 && ndjson >= json {
		return pagelist.NDJSON
	}
	return pagelist.JSON
}

// WriteList answers with a page of a list: its next cursor as Link and X-Next-Cursor, an ETag when it
// is one chunk, its chunks as they are read otherwise. It closes list.
func WriteList(w http.ResponseWriter, r *http.Request, q *Query, b Binding, list *pagelist.List) error {
	defer list.Close()
	h := w.Header()
	cursor := ""
	if next := list.Next(); next != nil {
		cursor = b.Cursor(*next)
		h["X-Next-Cursor"] = []string{cursor}
		h["Link"] = []string{"<" + InfoFrom(r.Context()).BaseURL() + r.URL.EscapedPath() + "?" +
			q.encodeWith("cursor", cursor) + `>; rel="next"`}
	}
	contentType := typeJSON
	if ListFormat(r) == pagelist.NDJSON {
		contentType = typeNDJSON
	}
	if body, whole := list.Whole(); whole {
		return WriteBody(w, r, contentType, body, cursor)
	}
	return writePieces(w, r, contentType, list.Chunks())
}

// WritePieces answers 200 with a JSON body of unknown size, as its pieces come, or 304 when the client has it already.
// version identifies the body: equal versions mean equal bodies.
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

// etag returns the weak tag of a body, or of its version, and of extra, which is not in it.
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
