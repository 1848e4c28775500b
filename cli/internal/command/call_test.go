package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The path of lectern api alone decides whether a project is needed, and the answer how it is printed.
func TestAPIPrintsAnyAnswer(t *testing.T) {
	answers := map[string]string{"/openapi.json": `{"openapi":"3.0.3"}`, "/openapi.yaml": "openapi: 3.0.3\ninfo:\n  title: Lectern\n"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, answers[r.URL.Path]) }))
	defer server.Close()
	environ := map[string]string{"LECTERN_URL": server.URL}
	if r := lectern(t, "", environ, "api", "/openapi.json"); r.code != exitOK || r.out != answers["/openapi.json"]+"\n" {
		t.Errorf("%+v", r)
	}
	if r := lectern(t, "", environ, "api", "/openapi.yaml"); r.code != exitOK || r.out != answers["/openapi.yaml"] {
		t.Errorf("%+v", r)
	}
	if r := lectern(t, "", environ, "api", "/openapi.yaml", "-o", "json"); r.code != exitFailure || !strings.Contains(r.err, "not JSON") {
		t.Errorf("%+v", r)
	}
}
