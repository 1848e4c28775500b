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

// Error is an answer of the server, or of a gateway in front of the server, with a status other than success. The
// methods of [Client], [Ingester] and [Administrator] return an Error as *Error in the chain of their error.
type Error struct {
	// Status is the HTTP status of the answer, such as 404.
	Status int
	// Code is the error code, such as [CodeEntryNotFound]. Code is empty if the body has none, as in an answer of a
	// gateway.
	Code string
	// Message is a sentence about the error for people. Programs should use Code.
	Message string
	// RequestID is the answer's header X-Request-Id, by which the operator finds the request in the logs.
	RequestID string
	// RetryAfter is how long the server asks the client to wait before a retry; 0 if the server does not ask.
	RetryAfter time.Duration
	// Context holds the other fields of the body, such as projectId, entryId and parameter. Context is nil if the body
	// is not from the API.
	Context map[string]any
}

// Error returns the message, the code, the status and the request id as text, as in "no such entry (entry_not_found,
// HTTP 404, request 1)".
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

// Code returns the error code of the [*Error] in err's chain, or "" if the chain has none.
func Code(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// HistoryLostError is the answer 410 of the change feed to a position that the server does not have any more. The server
// was restored from a backup, for example, and has lost the numbers between After and Until. A reader drops what has a
// greater number than After, and reads the feed from the beginning. [*Error] is in the chain too.
type HistoryLostError struct {
	After int64
	// Until is nil if the project has not been written since.
	Until *int64
	cause *Error
}

// Error returns the text of the server's answer, as [Error.Error] does.
func (e *HistoryLostError) Error() string { return e.cause.Error() }

// Unwrap returns the server's answer as an [*Error].
func (e *HistoryLostError) Unwrap() error { return e.cause }

// Stretch returns the numbers that were lost as text, as in "after 10 and before 20", or "after 10".
func (e *HistoryLostError) Stretch() string {
	if e.Until == nil {
		return fmt.Sprintf("after %d", e.After)
	}
	return fmt.Sprintf("after %d and before %d", e.After, *e.Until)
}

// typed returns e, or a [*HistoryLostError] of e if that is the answer.
func (e *Error) typed() error {
	after, ok := e.Context["after"].(float64)
	if e.Code != CodeHistoryLost || !ok {
		return e
	}
	lost := &HistoryLostError{After: int64(after), cause: e}
	if until, ok := e.Context["until"].(float64); ok {
		lost.Until = new(int64(until))
	}
	return lost
}

// ErrIncomplete is in the chain of an error that reports a truncated answer. The caller must discard the received part
// of the answer, or treat it as incomplete.
var ErrIncomplete = errors.New("the answer was cut off")

const longestErrorBody = 64 << 10

// readError makes an [*Error] of an unsuccessful response. readError reads and closes the body. now is the current
// time, for RetryAfter.
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

// RetryAfter returns how long the header Retry-After (RFC 9110, section 10.2.3) asks to wait from now on. The header
// has seconds or a date. The result is 0 without a valid value, and at most a year.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	header := strings.TrimSpace(h.Get("Retry-After"))
	if header == "" {
		return 0
	}
	const longest = 365 * 24 * time.Hour
	if seconds, err := strconv.Atoi(header); err == nil {
		return time.Duration(min(max(seconds, 0), int(longest/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), longest)
	}
	return 0
}
