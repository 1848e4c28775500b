// Package apierr owns the errors that clients get: a closed set of codes, with the status, the context fields and the
// JSON of each code. All services answer errors in this one shape:
//
//	{"error": {"code": "entry_not_found", "message": "…"}, "entryId": "…"}
//
// An error has a message for the client, and a cause that the client does not see. An error that is not an *Error
// becomes [Internal] with a fixed text.
package apierr

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Error is a failed request as its client sees it, with a cause that the client does not see.
type Error struct {
	code       Code
	message    string
	context    []field
	retryAfter time.Duration
	allow      string
	cause      error
	refusal    Refusal
}

// field is one of the fields that the JSON body has after "error", such as entryId.
type field struct {
	name  string
	value any
}

// New returns an error with a message for the client. New panics if the code is not in the set, which only a mistake in
// the program can cause.
func New(code Code, message string) *Error {
	if _, ok := specs[code]; !ok {
		panic("apierr: unknown code " + string(code))
	}
	return &Error{code: code, message: message}
}

// Code returns the error's code, which the body shows as error.code.
func (e *Error) Code() Code { return e.code }

// Status returns the HTTP status of the answer to the client. The code determines the status.
func (e *Error) Status() int { return specs[e.code].status }

// Message returns the text for the client, which the body shows as error.message.
func (e *Error) Message() string { return e.message }

// RetryAfter returns how long the client should wait before it retries, for the header Retry-After. The result is 0 if
// the error has no such time.
func (e *Error) RetryAfter() time.Duration { return e.retryAfter }

// Allow returns the value of the Allow header of an error that [BadMethod] made: the methods of the path. For other
// errors, Allow returns "".
func (e *Error) Allow() string { return e.allow }

// Error returns code, message and cause: a text for the log, not for the client.
func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.code, e.message, e.cause)
	}
	return fmt.Sprintf("%s: %s", e.code, e.message)
}

// LogValue returns the text of Error. Without LogValue, a log in JSON would show the client's body, without the cause.
func (e *Error) LogValue() slog.Value { return slog.StringValue(e.Error()) }

// Unwrap returns the cause, or nil, for [errors.Is] and [errors.As].
func (e *Error) Unwrap() error { return e.cause }

// With returns a copy of e whose context field name is value: a string, an integer or nil. MarshalJSON writes only the
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

// Because returns a copy of e with a cause, which [Error.Unwrap] returns and the client does not see.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// After returns a copy of e that asks the client to wait d before it retries.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.retryAfter = d
	return &c
}

// MarshalJSON returns the body of the answer: the error, then the code's context fields in the contract's order. A
// field that was not set is null. The cause is left out.
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

// From returns the *Error that err is or wraps. If the wrapped *Error has no cause, the result is a copy with err as
// its cause. If err wraps none, the result is an [Internal] error with the cause err, whose message does not show err.
func From(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		if e.cause == nil && error(e) != err {
			return e.Because(err)
		}
		return e
	}
	return New(Internal, "Something went wrong on our side. The request id names this failure in our logs.").Because(err)
}
