package httpserver

import (
	"crypto/rand"
	"net/http"
)

// maxRequestID is the longest request id that the server accepts from a client, in bytes.
const maxRequestID = 128

// requestID returns the X-Request-Id of h if h has exactly one, and its text is short and safe to log. Otherwise
// requestID returns a new random id.
func requestID(h http.Header) string {
	if ids := h["X-Request-Id"]; len(ids) == 1 && saneRequestID(ids[0]) {
		return ids[0]
	}
	return rand.Text()
}

func saneRequestID(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	for i := range len(id) {
		c := id[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == ':', c == '/', c == '+', c == '=', c == '@', c == '-':
		default:
			return false
		}
	}
	return true
}
