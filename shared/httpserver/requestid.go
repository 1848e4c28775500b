package httpserver

import (
	"crypto/rand"
	"net/http"
)

// longestRequestID is the longest request id that is taken from a client, in bytes.
const longestRequestID = 128

// requestID returns the id that the client sent, when it sent one that can be echoed and logged safely,
// or a new one of 26 random characters.
func requestID(h http.Header) string {
	if ids := h["X-Request-Id"]; len(ids) == 1 && saneRequestID(ids[0]) {
		return ids[0]
	}
	return rand.Text()
}

func saneRequestID(id string) bool {
	if id == "" || len(id) > longestRequestID {
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
