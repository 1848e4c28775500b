package httpserver_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
)

// TestMalformedBodies checks that the server never treats a part of a malformed body as a request, even if the handler
// does not read the body.
func TestMalformedBodies(t *testing.T) {
	routes := func(rt *httpapi.Router) {
		rt.Post("/read", func(w http.ResponseWriter, r *http.Request) error {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return err
			}
			return hello(w, r)
		})
		rt.Post("/unread", hello)
	}
	internal := httpapi.NewRouter()
	routes(internal)
	s := serve(t, setup{routes: routes, internal: internal})
	for name, url := range map[string]string{"public": s.public, "internal": s.internal} {
		for _, path := range []string{"/read", "/unread", "/unknown"} {
			t.Run(name+" "+path, func(t *testing.T) {
				faulttest.MalformedChunks(t, url, "POST "+path+" HTTP/1.1\r\nHost: x")
			})
		}
	}
}
