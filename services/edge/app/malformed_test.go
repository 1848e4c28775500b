package app_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
)

// TestMalformedBodies checks that no part of a malformed body is treated as a request, even if the service does not
// read the body.
func TestMalformedBodies(t *testing.T) {
	for _, reads := range []bool{true, false} {
		r := start(t, nil, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
			if reads {
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					panic(http.ErrAbortHandler)
				}
			}
			_, _ = io.WriteString(w, "answered")
		}, routes.Entries, routes.Proxy)
		for _, path := range []string{"/proxy?url=a", "/projects/p/entries", "/unknown"} {
			name := path + " unread"
			if reads {
				name = path + " read"
			}
			t.Run(name, func(t *testing.T) {
				faulttest.MalformedChunks(t, r.url, "POST "+path+" HTTP/1.1\r\nHost: x")
			})
		}
	}
}

// TestConnectionAfterABody checks that the edge keeps a connection after a complete body. It closes the connection if
// it answered before the end of the body, or if the body was chunked.
func TestConnectionAfterABody(t *testing.T) {
	t.Parallel()
	// The edge reads the rest of a body for READ_TIMEOUT.
	r := start(t, map[string]string{"READ_TIMEOUT": "1s"}, func(_ routes.Service, w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // allows an answer before the end of the body
		if r.URL.RawQuery == "url=read" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
	}, routes.Proxy)
	for _, tt := range []struct {
		name, query, body string
		closes            bool
	}{
		{"no body", "url=unread", "\r\n", false},
		{"a whole body", "url=read", "Content-Length: 4\r\n\r\nbody", false},
		{"whole chunks, which a proxy in front may have framed otherwise", "url=read", "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", true},
		{"answered before the end", "url=unread", "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n", true},
		{"answered before the end of a known length", "url=unread", "Content-Length: 8\r\n\r\nbody", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn := faulttest.Dial(t, r.url)
			conn.Say("POST /proxy?" + tt.query + " HTTP/1.1\r\nHost: x\r\n" + tt.body)
			status, _, _, err := conn.Answer(http.MethodPost)
			if err != nil || status != http.StatusOK {
				t.Fatalf("%d, %v", status, err)
			}
			if tt.closes {
				if !conn.Ended() {
					t.Error("the connection stays open")
				}
				return
			}
			conn.Say("GET /proxy?url=read HTTP/1.1\r\nHost: x\r\n\r\n")
			if status, _, _, err := conn.Answer(http.MethodGet); err != nil || status != http.StatusOK {
				t.Errorf("the next request: %d, %v", status, err)
			}
		})
	}
}
