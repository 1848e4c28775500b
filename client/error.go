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

// Error is the server's refusal of a request.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Code is the error code, such as [CodeEntryNotFound]. It is empty if the body is not from the API but from a gateway,
	// for example.
	Code string
	// Message describes the error.
	Message string
	// RequestID is the answer's X-Request-Id. The operator finds the request by it.
	RequestID string
	// RetryAfter is how long the server asked to wait; 0 if it did not.
	RetryAfter time.Duration
	// Context holds the body's other fields (projectId, entryId, parameter).
	Context map[string]any
}

// Error returns message, code, status and request id on one line.
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

// ErrIncomplete is in the chain of an error that reports a truncated answer. The caller must discard the part that it
// received, or treat it as incomplete.
var ErrIncomplete = errors.New("the answer was cut off")

const longestErrorBody = 64 << 10

// readError returns the error of an unsuccessful response. It reads and closes the body.
func readError(r *http.Response, now time.Time) *Error {
	defer r.Body.Close()
	e := &Error{
		Status:     r.StatusCode,
		RequestID:  r.Header.Get("X-Request-Id"),
		RetryAfter: RetryAfter(r.Header, now),
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

// RetryAfter returns how long Retry-After (RFC 9110, section 10.2.3) asks to wait from now on, in seconds or until a date. It
// is 0 without a valid value, and at most a year.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	header := strings.TrimSpace(h.Get("Retry-After"))
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
