package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/httpapi"
)

// maxBody is the longest body that operation 9 reads, in bytes.
const maxBody = 64 << 10

// lookUpRegion is operation 9. The answer depends on the moment, so nobody is to keep it; callers that
// want to keep it know for how long it is good enough.
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
	projectID, at, err := a.parseLookUp(body)
	if err != nil {
		return err
	}
	if at == nil {
		now := a.now()
		at = &now
	}
	httpapi.InfoFrom(r.Context()).ProjectID = projectID
	z, err := a.regions.Get(r.Context(), projectID)
	if err != nil {
		return err
	}
	answer := make([]byte, 0, 96)
	answer = append(answer, `{"region":`...)
	answer = httpapi.AppendText(answer, []byte(z.Name()))
	answer = append(answer, `,"offsetInMinutes":`...)
	answer = strconv.AppendInt(answer, int64(z.OffsetMinutes(*at)), 10)
	answer = append(answer, '}', '\n')
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Cache-Control"] = []string{"no-store"}
	h["Content-Length"] = []string{strconv.Itoa(len(answer))}
	_, _ = w.Write(answer) // a client that went away can not be told
	return nil
}

// checkType refuses a body that is not said to be plain JSON.
func checkType(h http.Header) error {
	given := h.Values("Content-Type")
	if len(given) != 1 || given[0] != "application/json" {
		media, parameters, err := "", map[string]string(nil), error(nil)
		if len(given) == 1 {
			media, parameters, err = mime.ParseMediaType(given[0])
		}
		charset, named := parameters["charset"]
		if err != nil || media != "application/json" || named && !strings.EqualFold(charset, "utf-8") {
			return apierr.New(apierr.UnsupportedMediaType, fmt.Sprintf(
				"Content-Type was given as %q; allowed: application/json, once.", shown(strings.Join(given, ", "))))
		}
	}
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return apierr.New(apierr.UnsupportedMediaType, fmt.Sprintf(
			"Content-Encoding was given as %q; send the body as it is.", shown(coding)))
	}
	return nil
}

// readBody reads the whole body. A connection that breaks off or falls silent is ended without an
// answer.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	var body []byte
	var err error
	switch {
	case r.ContentLength > maxBody:
		return nil, tooLarge()
	case r.ContentLength >= 0:
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, body)
	default:
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge()
	}
	if err != nil {
		httpapi.InfoFrom(r.Context()).Err = err
		httpapi.Abort(w, r)
	}
	return body, nil
}

func tooLarge() error {
	return apierr.New(apierr.PayloadTooLarge, fmt.Sprintf("The body is longer than %d bytes.", maxBody))
}

// lookUpShape is what a body may be, for messages.
const lookUpShape = `{"projectId": "…"}, with "at" (a date and time such as 2022-01-31T09:30:00Z) if you like`

func badBody(why string) error {
	return apierr.New(apierr.InvalidBody, "The body "+why+"; allowed: "+lookUpShape+".")
}

// parseLookUp reads {"projectId": "…", "at": "…"}; at is nil when it is not given.
func (a *API) parseLookUp(body []byte) (projectID string, at *time.Time, err error) {
	d, ok := a.decoders.Get().(*jsontext.Decoder)
	if !ok {
		d = new(jsontext.Decoder)
	}
	defer a.decoders.Put(d)
	d.Reset(bytes.NewBuffer(body)) // which the decoder reads in place
	if kind := d.PeekKind(); kind != '{' {
		if _, err := d.ReadValue(); err != nil {
			return "", nil, notJSON(err)
		}
		return "", nil, badBody("is not a JSON object")
	}
	if _, err := d.ReadToken(); err != nil {
		return "", nil, notJSON(err)
	}
	found := false
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			return "", nil, notJSON(err)
		}
		name := token.String()
		value, err := d.ReadValue()
		if err != nil {
			return "", nil, notJSON(err)
		}
		switch name {
		case "projectId":
			text, isText := textOf(value)
			if !isText || !httpapi.ValidIdentifier(text) {
				return "", nil, badBody("has a projectId that is no text of 1 to 256 bytes without NUL")
			}
			projectID, found = text, true
		case "at":
			text, isText := textOf(value)
			micros, err := httpapi.ParseTime(text)
			if !isText || err != nil {
				return "", nil, badBody("has an at that is no date and time")
			}
			moment := httpapi.Time(micros)
			at = &moment
		default:
			return "", nil, badBody(fmt.Sprintf("has an unknown field %q", shown(name)))
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return "", nil, notJSON(err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return "", nil, badBody("goes on after its JSON object")
	}
	if !found {
		return "", nil, badBody("has no projectId")
	}
	return projectID, at, nil
}

// textOf reads a JSON string.
func textOf(v jsontext.Value) (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, v)
	return string(text), err == nil
}

// notJSON says where a body stops being JSON.
func notJSON(err error) error {
	if errors.Is(err, io.EOF) {
		return badBody("is empty")
	}
	reason := strings.TrimPrefix(err.Error(), "jsontext: ")
	if errors.Is(err, io.ErrUnexpectedEOF) {
		reason = "it ends in the middle"
	}
	return badBody("is not valid JSON (" + shown(reason) + ")")
}

// shown shortens what a client gave.
func shown(s string) string {
	const longest = 100
	if len(s) > longest {
		return strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
