package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Errors of [Projects], for which a caller tests with errors.Is.
var (
	// ErrUnauthorized means that the region service does not accept the key of the client.
	ErrUnauthorized = errors.New("region client: the key is not accepted")

	// ErrUnavailable means that the client got no whole answer from the region service within the timeout, or that the
	// service answered 503.
	ErrUnavailable = errors.New("region client: the region service cannot answer")
)

// Error is an answer of the region service with a status other than 200, or an answer that the client cannot decode.
type Error struct {
	Status    int    // the HTTP status
	Code      string // the API's code, such as "invalid_body"; empty if the answer is not an error of the API
	Message   string // for people
	RequestID string // identifies the request in the service's log; empty if the answer has no id
}

// Error returns the status, the code, the message and the request's id in one line.
func (e *Error) Error() string {
	return fmt.Sprintf("region client: %d %s: %s (request %s)", e.Status, e.Code, e.Message, e.RequestID)
}

// Is reports whether target is [ErrUnauthorized] and the status is 401, or target is [ErrUnavailable] and the status
// is 503.
func (e *Error) Is(target error) bool {
	return target == ErrUnauthorized && e.Status == http.StatusUnauthorized ||
		target == ErrUnavailable && e.Status == http.StatusServiceUnavailable
}

// refusal returns the Error for an answer whose status is not 200. If body is not an error of the API, Code is empty
// and Message is the name of the status.
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
