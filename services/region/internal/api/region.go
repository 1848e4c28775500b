package api

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/wire"
)

// maxBody is the largest body that operation 9 reads, in bytes.
const maxBody = 64 << 10

// lookUpRegion is operation 9. Its answer depends on the moment, so no cache may store it.
func (a *API) lookUpRegion(w http.ResponseWriter, r *http.Request) error {
	if err := httpapi.ParseQuery(r).Err(); err != nil {
		return err
	}
	if err := checkType(r.Header); err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	asked, err := parseLookUp(body, a.now)
	if err != nil {
		return err
	}
	httpapi.InfoFrom(r.Context()).ProjectID = asked.projectID
	z, err := a.regions.Get(r.Context(), asked.projectID)
	if err != nil {
		return err
	}
	answer := make([]byte, 0, 96)
	answer = append(answer, `{"region":`...)
	answer = wire.AppendText(answer, []byte(z.Name()))
	answer = append(answer, `,"offsetInMinutes":`...)
	answer = strconv.AppendInt(answer, int64(z.OffsetMinutes(asked.at)), 10)
	answer = append(answer, '}', '\n')
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, answer)
	return nil
}

// checkType refuses a Content-Type other than JSON in UTF-8, and any Content-Encoding.
func checkType(h http.Header) error {
	given := strings.Join(h.Values("Content-Type"), ", ")
	media, parameters, err := mime.ParseMediaType(given)
	charset, named := parameters["charset"]
	if err != nil || media != "application/json" || named && !strings.EqualFold(charset, "utf-8") {
		return apierr.New(apierr.UnsupportedMediaType, fmt.Sprintf(
			"Content-Type was given as %q; allowed: application/json, once.", shortened(given)))
	}
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return apierr.New(apierr.UnsupportedMediaType, fmt.Sprintf(
			"Content-Encoding was given as %q; send the body as it is.", shortened(coding)))
	}
	return nil
}

// readBody reads the whole body. If the client disconnects or sends nothing for too long, it aborts the
// request.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, apierr.New(apierr.PayloadTooLarge, fmt.Sprintf("The body is longer than %d bytes.", maxBody))
	}
	if err != nil {
		httpapi.InfoFrom(r.Context()).Err = err
		panic(http.ErrAbortHandler)
	}
	return body, nil
}

// lookUp is a request of operation 9.
type lookUp struct {
	projectID string
	at        time.Time
}

// parseLookUp parses a body. The moment is now if the body names none.
func parseLookUp(body []byte, now func() time.Time) (lookUp, error) {
	var fields struct {
		ProjectID jsontext.Value `json:"projectId"`
		At        jsontext.Value `json:"at"`
	}
	if err := json.Unmarshal(body, &fields, json.RejectUnknownMembers(true)); err != nil {
		return lookUp{}, invalidJSON(err)
	}
	if fields.ProjectID == nil {
		return lookUp{}, invalidBody("has no projectId")
	}
	id, ok := text(fields.ProjectID)
	if !ok || !wire.ValidIdentifier(id) {
		return lookUp{}, invalidBody("has a projectId that is not a text of 1 to 256 bytes without NUL")
	}
	if fields.At == nil {
		return lookUp{id, now()}, nil
	}
	at, ok := text(fields.At)
	micros, err := wire.ParseTime(at)
	if !ok || err != nil {
		return lookUp{}, invalidBody("has an at that is not a date and time")
	}
	return lookUp{id, wire.Time(micros)}, nil
}

// text returns the text of a JSON string, and false for any other value.
func text(v jsontext.Value) (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	s, err := jsontext.AppendUnquote(nil, v)
	return string(s), err == nil
}

// invalidJSON says why a body cannot be decoded.
func invalidJSON(err error) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return invalidBody("is not valid JSON (" + shortened(strings.TrimPrefix(syntax.Error(), "jsontext: ")) + ")")
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok && errors.Is(err, json.ErrUnknownName) {
		return invalidBody(fmt.Sprintf("has an unknown field %q", shortened(semantic.JSONPointer.LastToken())))
	}
	return invalidBody("is not a JSON object")
}

func invalidBody(why string) error {
	return apierr.New(apierr.InvalidBody, "The body "+why+`; allowed: {"projectId": "…"}, with "at" (a date and time such as 2022-01-31T09:30:00Z) if you like.`)
}

// shortened limits a text of the client to about 100 bytes, for messages.
func shortened(s string) string {
	const longest = 100
	if len(s) > longest {
		return strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
