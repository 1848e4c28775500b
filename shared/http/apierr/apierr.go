// Package apierr owns the errors that clients get: a closed set of codes, with the status, the context fields and the
// JSON of each. All services answer errors in this one shape:
//
//	{"error": {"code": "entry_not_found", "message": "…"}, "entryId": "…"}
//
// An error has a message for the client and a cause for the log. The cause never leaves the process. An error that is
// not an *Error becomes [Internal] with a fixed text.
package apierr

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Error is a failed request as its client sees it, with a cause that only the log shows.
type Error struct {
	code       Code
	message    string
	context    []field
	retryAfter time.Duration
	allow      string
	cause      error
}

// field is a context field of the body.
type field struct {
	name  string
	value any
}

// New returns an error with a message for the client. It panics if the code is not in the set, which only a mistake
// in the program can cause.
func New(code Code, message string) *Error {
	if _, ok := specs[code]; !ok {
		panic("apierr: unknown code " + string(code))
	}
	return &Error{code: code, message: message}
}

// Code returns the error's code.
func (e *Error) Code() Code { return e.code }

// Status returns the HTTP status that the error is answered with.
func (e *Error) Status() int { return specs[e.code].status }

// Message returns the text for the client.
func (e *Error) Message() string { return e.message }

// RetryAfter returns how long the client should wait before it retries. It is 0 if that is not known.
func (e *Error) RetryAfter() time.Duration { return e.retryAfter }

// Allow returns the value of the Allow header of a [MethodNotAllowed].
func (e *Error) Allow() string { return e.allow }

// Error returns code, message and cause: the text for the log, not for the client.
func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.code, e.message, e.cause)
	}
	return fmt.Sprintf("%s: %s", e.code, e.message)
}

// LogValue returns the text of Error. Without it, a log in JSON would show the client's body, without the cause.
func (e *Error) LogValue() slog.Value { return slog.StringValue(e.Error()) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// With returns a copy whose context field name is value: a string, an integer or nil. MarshalJSON writes only the
// fields of the code, so that a body never has more fields than the contract.
func (e *Error) With(name string, value any) *Error {
	c := *e
	c.context = make([]field, 0, len(e.context)+1)
	for _, f := range e.context {
		if f.name != name {
			c.context = append(c.context, f)
		}
	}
	c.context = append(c.context, field{name, value})
	return &c
}

// Has reports whether the context field name was set, even if bodies of the code do not have it.
func (e *Error) Has(name string) bool {
	_, ok := e.field(name)
	return ok
}

func (e *Error) field(name string) (value any, ok bool) {
	for _, f := range e.context {
		if f.name == name {
			return f.value, true
		}
	}
	return nil, false
}

// Because returns a copy with a cause for the log.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// After returns a copy that asks the client to wait d before it retries.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.retryAfter = d
	return &c
}

// MarshalJSON returns the body: the error, then the code's context fields in the contract's order. A field that was
// not set is null.
func (e *Error) MarshalJSON() ([]byte, error) {
	quoted := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			return []byte("null")
		}
		return b
	}
	b := []byte(`{"error":{"code":`)
	b = append(b, quoted(string(e.code))...)
	b = append(b, `,"message":`...)
	b = append(b, quoted(e.message)...)
	b = append(b, '}')
	for _, name := range specs[e.code].context {
		b = append(b, ',')
		b = append(b, quoted(name)...)
		b = append(b, ':')
		value, _ := e.field(name)
		b = append(b, quoted(value)...)
	}
	return append(b, '}'), nil
}

// From returns err as an *Error: the one that it wraps, or an [Internal] without its text. If the result has no cause
// yet, err becomes its cause.
func From(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		if e.cause == nil && error(e) != err {
			return e.Because(err)
		}
		return e
	}
	return New(Internal, "Something went wrong on our side. The request id names this failure in our logs.").Because(err)
}
