package api

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/httpapi"
)

// maxBody is the largest JSON body that is read, in bytes.
const maxBody = 64 << 10

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

// text returns the text of a JSON string, and false for any other value.
func text(v jsontext.Value) (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	s, err := jsontext.AppendUnquote(nil, v)
	return string(s), err == nil
}

// faultOfJSON says why a body cannot be decoded, as the rest of a sentence that begins with "The body".
func faultOfJSON(err error) string {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return "is not valid JSON (" + shortened(strings.TrimPrefix(syntax.Error(), "jsontext: ")) + ")"
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok && errors.Is(err, json.ErrUnknownName) {
		return fmt.Sprintf("has an unknown field %q", shortened(semantic.JSONPointer.LastToken()))
	}
	return "is not a JSON object"
}

func invalidBody(why, allowed string) error {
	return apierr.New(apierr.InvalidBody, "The body "+why+"; allowed: "+allowed+".")
}

// shortened limits a text of the client to about 100 bytes, for messages.
func shortened(s string) string {
	const longest = 100
	if len(s) > longest {
		return strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
