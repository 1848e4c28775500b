package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Error is an answer that refuses the request.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Code names the kind of failure, as the API documents it ("unauthorized", "entry_not_found"). It
	// is empty when the body was not the API's, as from a gateway in between.
	Code string
	// Message is the API's text for people.
	Message string
	// RequestID is the answer's X-Request-Id, by which the operator finds the request.
	RequestID string
	// RetryAfter is how long the server asked to wait; 0 when it said nothing.
	RetryAfter time.Duration
	// Context holds the body's other fields (projectId, entryId, parameter) as they came.
	Context map[string]any
}

// Error gives message, code, status and request id on one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	b.WriteString(" (")
	if e.Code != "" {
		b.WriteString(e.Code)
		b.WriteString(", ")
	}
	fmt.Fprintf(&b, "HTTP %d", e.Status)
	if e.RequestID != "" {
		b.WriteString(", request ")
		b.WriteString(e.RequestID)
	}
	b.WriteByte(')')
	return b.String()
}

// Code returns the code of the [*Error] in err's chain, or "".
func Code(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// ErrIncomplete is in the chain of errors that say that an answer ended before its end: what was
// received of it must not be taken for the whole.
var ErrIncomplete = errors.New("the answer was cut off")

const longestErrorBody = 64 << 10

// readError makes the error of a response that is no success. It reads the body and closes it.
func readError(r *http.Response, now time.Time) *Error {
	defer r.Body.Close()
	e := &Error{
		Status:     r.StatusCode,
		RequestID:  r.Header.Get("X-Request-Id"),
		RetryAfter: retryAfter(r.Header.Get("Retry-After"), now),
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, longestErrorBody))
	var fields map[string]any
	if err == nil && json.Unmarshal(body, &fields) == nil {
		if inner, ok := fields["error"].(map[string]any); ok {
			e.Code, _ = inner["code"].(string)
			e.Message, _ = inner["message"].(string)
			delete(fields, "error")
			e.Context = fields
		}
	}
	if e.Message == "" {
		e.Message = "the server answered " + strings.TrimSpace(fmt.Sprintf("%d %s", r.StatusCode, http.StatusText(r.StatusCode)))
		if where := r.Header.Get("Location"); where != "" && r.StatusCode/100 == 3 {
			e.Message += ", a redirect to " + where + ", which is not followed"
		}
	}
	return e
}

// retryAfter reads the header of that name (RFC 9110, section 10.2.3): seconds or a date.
func retryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	if header == "" {
		return 0
	}
	if seconds, err := strconv.Atoi(header); err == nil {
		const longest = 365 * 24 * 60 * 60
		return time.Duration(min(max(seconds, 0), longest)) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
