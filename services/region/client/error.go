package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Errors that callers tell apart by errors.Is.
var (
	// ErrUnauthorized says that the service does not accept the key.
	ErrUnauthorized = errors.New("region client: the key is not accepted")

	// ErrUnavailable says that the service was out of reach, or could not answer, for the whole time.
	ErrUnavailable = errors.New("region client: the region service can not answer")

	// ErrClosed says that the Client was closed.
	ErrClosed = errors.New("region client: closed")
)

// Error is an answer of the service that is no region.
type Error struct {
	Status    int    // the HTTP status
	Code      string // the API's code, such as "invalid_body"; empty when the answer was not the service's
	Message   string // for people
	RequestID string // names the request in the service's log
}

// Error gives what the service said.
func (e *Error) Error() string {
	return fmt.Sprintf("region client: %d %s: %s (request %s)", e.Status, e.Code, e.Message, e.RequestID)
}

// Is tells that a 401 is [ErrUnauthorized] and a 503 is [ErrUnavailable].
func (e *Error) Is(target error) bool {
	return target == ErrUnauthorized && e.Status == http.StatusUnauthorized ||
		target == ErrUnavailable && e.Status == http.StatusServiceUnavailable
}

// refusal reads an answer that is an error.
func refusal(resp *http.Response, body []byte) *Error {
	var said struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &said) != nil || said.Error.Code == "" {
		said.Error.Message = http.StatusText(resp.StatusCode)
	}
	return &Error{
		Status: resp.StatusCode, Code: said.Error.Code, Message: said.Error.Message,
		RequestID: resp.Header.Get("X-Request-Id"),
	}
}
