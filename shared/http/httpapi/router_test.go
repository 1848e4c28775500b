package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
)

func TestRouterServesAnyMethodAndConnect(t *testing.T) {
	says := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
	}
	rt := httpapi.NewRouter()
	rt.Any("/any", says("any"))
	ask := func(method, target string) string {
		w := httptest.NewRecorder()
		rt.ServeHTTP(w, httptest.NewRequest(method, target, nil))
		if w.Code != http.StatusOK {
			return http.StatusText(w.Code)
		}
		return w.Body.String()
	}
	if got := ask("CONNECT", "example.com:443"); got != "Not Found" {
		t.Errorf("CONNECT without a handler: %q", got)
	}
	rt.Connect(says("connect"))
	got := map[string]string{}
	for _, method := range []string{"GET", "OPTIONS", "PROPFIND", "DELETE"} {
		got[method] = ask(method, "/any")
	}
	got["CONNECT"] = ask("CONNECT", "example.com:443")
	got["other path"] = ask("GET", "/other")
	want := map[string]string{"GET": "any", "OPTIONS": "any", "PROPFIND": "any", "DELETE": "any", "CONNECT": "connect", "other path": "Not Found"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
