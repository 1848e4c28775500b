package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Errors for errors.Is.
var (
	// ErrUnauthorized means that the service does not accept the key.
	ErrUnauthorized = errors.New("region client: the key is not accepted")

	// ErrUnavailable means that the service could not be reached, or answered 503, within the timeout.
	ErrUnavailable = errors.New("region client: the region service cannot answer")
)

// Error is an error that the service answered, or an answer that the client cannot decode.
type Error struct {
	Status    int    // the HTTP status
	Code      string // the API's code, such as "invalid_body"; empty if another server answered
	Message   string // for people
	RequestID string // identifies the request in the service's log
}

// Error returns the answer in one line.
func (e *Error) Error() string {
	return fmt.Sprintf("region client: %d %s: %s (request %s)", e.Status, e.Code, e.Message, e.RequestID)
}

// Is reports whether target is [ErrUnauthorized] and the answer 401, or [ErrUnavailable] and the answer 503.
func (e *Error) Is(target error) bool {
	return target == ErrUnauthorized && e.Status == http.StatusUnauthorized ||
		target == ErrUnavailable && e.Status == http.StatusServiceUnavailable
}

// refusal decodes an answer whose status is not 200.
func refusal(resp *http.Response, body []byte) *Error {
	var answer struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Error.Code == "" {
		answer.Error.Message = http.StatusText(resp.StatusCode)
	}
	return &Error{
		Status: resp.StatusCode, Code: answer.Error.Code, Message: answer.Error.Message,
		RequestID: resp.Header.Get("X-Request-Id"),
	}
}
