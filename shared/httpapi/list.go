package httpapi

import (
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/lectern-dev/lectern/shared/pagelist"
)

const (
	typeJSON   = "application/json"
	typeNDJSON = "application/x-ndjson"
)

// ListFormat tells how r wants a list: NDJSON when its Accept names that and does not prefer JSON,
// else JSON.
func ListFormat(r *http.Request) pagelist.Format {
	wanted, against := 0.0, 0.0
	for _, header := range r.Header["Accept"] {
		for part := range strings.SplitSeq(header, ",") {
			name, parameters, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case typeNDJSON:
				wanted = max(wanted, quality(parameters))
			case typeJSON:
				against = max(against, quality(parameters))
			}
		}
	}
	if wanted > 0 && wanted >= against {
		return pagelist.NDJSON
	}
	return pagelist.JSON
}

// quality reads the weight among a media range's parameters (RFC 9110, section 12.4.2).
func quality(parameters string) float64 {
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(name, "q") {
			q, err := strconv.ParseFloat(value, 64)
			if err != nil || q < 0 || q > 1 {
				return 0
			}
			return q
		}
	}
	return 1
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

// WritePieces answers 200 with a JSON body of unknown size, as its pieces come, or 304 when the client
// has it already. Bodies with the same name must be the same.
func WritePieces(w http.ResponseWriter, r *http.Request, name []byte, pieces iter.Seq2[[]byte, error]) error {
	tag := etag(name, "")
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
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// etag names a body and what is not in it.
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
