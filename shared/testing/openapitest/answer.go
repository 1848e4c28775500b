package openapitest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/klauspost/compress/zstd"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/routes"
)

// Answer is the answer of a service on a public path.
type Answer struct {
	Method string
	Path   string // with its query, as it was sent
	Status int
	Header http.Header
	Body   []byte
	Broken bool // the body is incomplete
}

// largestBody is the length of the longest body that is checked. A longer body is a long list, and shorter lists are
// checked.
const largestBody = 4 << 20

// Faults returns the differences between a and the description.
func (d *Document) Faults(a Answer) []string {
	path, _, _ := strings.Cut(a.Path, "?")
	route, known := routes.Find(path)
	_, page := routes.Table(routes.Pages()).Find(path)
	switch {
	case preflight(a):
		return nil
	case !known:
		return d.refused(a, apierr.RouteNotFound)
	case !route.Allows(a.Method):
		return d.refused(a, apierr.MethodNotAllowed)
	case page:
		return nil
	case route.Methods == nil && a.Header.Get("X-Proxy-Worker-Success") == "true":
		return nil // the target's answer, which the description does not cover
	}
	op := d.Operation(route, a.Method)
	if op == nil {
		return []string{fmt.Sprintf("%s of %s is not described", a.Method, route.Template)}
	}
	response := op.Responses.Status(a.Status)
	if response == nil {
		return []string{fmt.Sprintf("%s is not described to answer %d", op.OperationID, a.Status)}
	}
	return append(headerFaults(response.Value, a.Header), d.bodyFaults(response.Value, a)...)
}

// InternalFaults returns the differences between an answer on an internal port and the description of the internal paths.
func (d *Document) InternalFaults(a Answer) []string {
	path, _, _ := strings.Cut(a.Path, "?")
	route, known := routes.Table(routes.Inside()).Find(path)
	if !known || !route.Allows(a.Method) {
		return nil // also health and metrics, which are not described
	}
	op := d.Operation(route, a.Method)
	if op == nil {
		return []string{fmt.Sprintf("%s of %s is not described", a.Method, route.Template)}
	}
	response := op.Responses.Status(a.Status)
	if response == nil {
		return []string{fmt.Sprintf("%s is not described to answer %d", op.OperationID, a.Status)}
	}
	return append(headerFaults(response.Value, a.Header), d.bodyFaults(response.Value, a)...)
}

// preflight reports whether a is the CORS answer to a browser's preflight request.
func preflight(a Answer) bool {
	return a.Method == http.MethodOptions && a.Status < 300 && a.Header.Get("Vary") != ""
}

// refused compares the answer to a request that is not an operation with the description of such answers.
func (d *Document) refused(a Answer, code apierr.Code) []string {
	response := d.Components.Responses["Refused"].Value
	if a.Status != code.Status() {
		return []string{fmt.Sprintf("%s is not an operation and is answered %d, not %d", a.Method, a.Status, code.Status())}
	}
	faults := append(headerFaults(response, a.Header), d.bodyFaults(response, a)...)
	if code == apierr.MethodNotAllowed && a.Header.Get("Allow") == "" {
		faults = append(faults, "no Allow")
	}
	var body struct{ Error struct{ Code apierr.Code } }
	if json.Unmarshal(a.Body, &body) == nil && body.Error.Code != code {
		faults = append(faults, fmt.Sprintf("code %q, not %q", body.Error.Code, code))
	}
	return faults
}

// ordinary reports whether name is a header of HTTP itself, which any answer may have.
func ordinary(name string) bool {
	return strings.HasPrefix(name, "Access-Control-") || slices.Contains([]string{
		"Cache-Control", "Connection", "Content-Encoding", "Content-Length", "Content-Security-Policy", "Content-Type", "Date",
		"Referrer-Policy", "Transfer-Encoding", "Vary", "X-Content-Type-Options",
	}, name)
}

func headerFaults(response *openapi3.Response, h http.Header) []string {
	var faults []string
	described := map[string]bool{}
	for name, header := range response.Headers {
		name = http.CanonicalHeaderKey(name)
		described[name] = true
		values := h.Values(name)
		switch {
		case len(values) == 0:
			if header.Value.Required {
				faults = append(faults, "the header "+name+" is missing")
			}
		case len(values) > 1:
			faults = append(faults, fmt.Sprintf("the header %s comes %d times", name, len(values)))
		default:
			if err := header.Value.Schema.Value.VisitJSON(headerValue(header.Value.Schema.Value, values[0])); err != nil {
				faults = append(faults, fmt.Sprintf("the header %s is %q: %s", name, values[0], reason(err)))
			}
		}
	}
	for name := range h {
		if !described[name] && !ordinary(name) {
			faults = append(faults, "the header "+name+" is not described")
		}
	}
	slices.Sort(faults)
	return faults
}

// headerValue converts a header's text to the type of its schema.
func headerValue(s *openapi3.Schema, text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && s.Type.Is("integer") {
		return float64(n)
	}
	return text
}

func (d *Document) bodyFaults(response *openapi3.Response, a Answer) []string {
	if a.Method == http.MethodHead || len(response.Content) == 0 {
		if len(a.Body) > 0 {
			return []string{"a body where none is described"}
		}
		return nil
	}
	given := a.Header.Get("Content-Type")
	name, _, err := mime.ParseMediaType(given)
	if err != nil || response.Content[name] == nil {
		return []string{fmt.Sprintf("the type %q of the body is not described", given)}
	}
	if a.Broken || len(a.Body) > largestBody {
		return nil
	}
	body, err := decoded(a)
	if err != nil {
		return []string{"the body cannot be decompressed: " + err.Error()}
	}
	switch name {
	case "application/json":
		return d.schemas.faults("body", response.Content[name].Schema, body)
	case "application/x-ndjson":
		// Each line has the schema of the items of the same list in JSON.
		item := response.Content["application/json"].Schema.Value.Items
		for i, line := range bytes.Split(bytes.TrimSuffix(body, []byte("\n")), []byte("\n")) {
			if len(body) == 0 {
				break
			}
			if faults := d.schemas.faults(fmt.Sprintf("line %d", i+1), item, line); faults != nil {
				return faults
			}
		}
	}
	return nil
}

// reason returns the text of err without the whole schema and value.
func reason(err error) string {
	if e, ok := errors.AsType[*openapi3.SchemaError](err); ok {
		return fmt.Sprintf("at /%s: %s", strings.Join(e.JSONPointer(), "/"), e.Reason)
	}
	return err.Error()
}

func decoded(a Answer) ([]byte, error) {
	switch a.Header.Get("Content-Encoding") {
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(a.Body))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(z)
	case "zstd":
		z, err := zstd.NewReader(nil)
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return z.DecodeAll(a.Body, nil)
	}
	return a.Body, nil
}
