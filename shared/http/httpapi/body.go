package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/lectern-dev/lectern/shared/apierr"
)

// maxBody is the size of the largest JSON body that [ReadBody] reads, in bytes.
const maxBody = 64 << 10

// CheckJSON returns an UnsupportedMediaType error for a Content-Type other than JSON in UTF-8, including none.
// CheckJSON also refuses a Content-Encoding other than identity.
func CheckJSON(h http.Header) error {
	given := strings.Join(h.Values("Content-Type"), ", ")
	media, parameters, err := mime.ParseMediaType(given)
	charset, named := parameters["charset"]
	if err != nil || media != "application/json" || named && !strings.EqualFold(charset, "utf-8") {
		return apierr.New(apierr.UnsupportedMediaType, fmt.Sprintf(
			"Content-Type was given as %q; allowed: application/json, once.", apierr.Shown(given)))
	}
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return apierr.New(apierr.UnsupportedMediaType, fmt.Sprintf(
			"Content-Encoding was given as %q; send the body as it is.", apierr.Shown(coding)))
	}
	return nil
}

// ReadBody returns a whole body of at most 64 KiB. The error is a PayloadTooLarge for a longer body. If the body cannot
// be read to its end, ReadBody panics with [http.ErrAbortHandler], which ends the connection.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, apierr.New(apierr.PayloadTooLarge, fmt.Sprintf("The body is longer than %d bytes.", maxBody))
	}
	if err != nil {
		InfoFrom(r.Context()).Err = err
		panic(http.ErrAbortHandler)
	}
	return body, nil
}

// JSONText returns the text of the JSON string v, and true. For any other value, JSONText returns false.
func JSONText(v jsontext.Value) (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	s, err := jsontext.AppendUnquote(nil, v)
	return string(s), err == nil
}

// JSONBool returns the field name of the body with the value v, which may be true, false or left out, which means false.
// The error for any other value is InvalidBody.
func JSONBool(name string, v jsontext.Value) (bool, error) {
	if !Given(v) || v.Kind() == 'f' {
		return false, nil
	}
	if v.Kind() != 't' {
		return false, InvalidField(name, v.String(), "true or false")
	}
	return true, nil
}

// faultOfJSON returns the reason why a body cannot be decoded, as the rest of a sentence that begins with "The body".
func faultOfJSON(err error) string {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return "is not valid JSON (" + apierr.Shown(strings.TrimPrefix(syntax.Error(), "jsontext: ")) + ")"
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok && errors.Is(err, json.ErrUnknownName) {
		return fmt.Sprintf("has an unknown field %q", apierr.Shown(semantic.JSONPointer.LastToken()))
	}
	return "is not a JSON object"
}

// InvalidBody returns the InvalidBody error with a message for the client. why is the rest of a sentence that begins
// with "The body". allowed describes the bodies that are allowed.
func InvalidBody(why, allowed string) error {
	return apierr.New(apierr.InvalidBody, "The body "+why+"; allowed: "+allowed+".")
}

// DecodeJSON decodes a JSON object into fields, a pointer to a struct. A body that cannot be decoded, or has an unknown
// field, is an InvalidBody error. The error's message contains allowed.
func DecodeJSON(body []byte, fields any, allowed string) error {
	if err := json.Unmarshal(body, fields, json.RejectUnknownMembers(true)); err != nil {
		return InvalidBody(faultOfJSON(err), allowed)
	}
	return nil
}

// ReadOptional reads a JSON object into fields as [ReadJSON] does, or leaves fields unchanged if the request has no
// body. allowed describes the object in the message of an InvalidBody error.
func ReadOptional(w http.ResponseWriter, r *http.Request, fields any, allowed string) error {
	body, err := ReadBody(w, r)
	if err != nil || len(body) == 0 {
		return err
	}
	if err := CheckJSON(r.Header); err != nil {
		return err
	}
	return DecodeJSON(body, fields, allowed)
}

// ReadJSON reads a JSON object of at most 64 KiB into fields. The error is an UnsupportedMediaType if [CheckJSON]
// refuses the headers, a PayloadTooLarge, or an InvalidBody, whose message contains allowed. An empty body is an
// InvalidBody.
func ReadJSON(w http.ResponseWriter, r *http.Request, fields any, allowed string) error {
	if err := CheckJSON(r.Header); err != nil {
		return err
	}
	body, err := ReadBody(w, r)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return InvalidBody("is empty", allowed)
	}
	return DecodeJSON(body, fields, allowed)
}

// Given reports whether the client sent the field v and did not set it to null.
func Given(v jsontext.Value) bool { return v != nil && v.Kind() != 'n' }

// InvalidField returns the InvalidBody error about the field name of the body. The message has the beginning of shown,
// the value that the client gave, and the allowed values.
func InvalidField(name, shown, allowed string) error {
	return apierr.New(apierr.InvalidBody, fmt.Sprintf("%q was given as %s; allowed: %s.", name, apierr.Shown(shown), allowed))
}

// WriteJSON answers 200 with v as JSON, which no cache may store. If v cannot be encoded, WriteJSON writes nothing and
// returns the error.
func WriteJSON(w http.ResponseWriter, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	WriteEncoded(w, append(body, '\n'))
	return nil
}

// WriteEncoded answers 200 with body, which is JSON and ends with a line feed. No cache may store the answer.
func WriteEncoded(w http.ResponseWriter, body []byte) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // a client that disconnected gets no report
}
