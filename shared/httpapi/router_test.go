package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/httpapi"
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

func TestTemplates(t *testing.T) {
	rt := httpapi.NewRouter()
	for _, template := range []string{"/", "/a", "/a/", "/a/{x}", "/a/{x}/b", "/a/{x}/b/{y}", "/a/c/d", "/z/{x...}"} {
		rt.Any(template, httpapi.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil }))
	}
	type found struct{ Template, X, Y string }
	for _, tc := range []struct {
		in   string
		want found // zero: the path is unknown
	}{
		{"/", found{Template: "/"}},
		{"/a", found{Template: "/a"}},
		{"/a/", found{Template: "/a/"}},
		{"/a/1", found{"/a/{x}", "1", ""}},
		{"/a/1/", found{}},
		{"/a/1/b", found{"/a/{x}/b", "1", ""}},
		{"/a/1/b/2", found{"/a/{x}/b/{y}", "1", "2"}},
		{"/a/1/b/2/", found{}},
		{"/a/1/b/2/c", found{}},
		{"/a//b", found{}},
		{"//a", found{}},
		{"/A", found{}},
		{"/a/c/d", found{Template: "/a/c/d"}},
		{"/a/1%2F2/b", found{"/a/{x}/b", "1/2", ""}},
		{"/a/%2e%2e/b", found{"/a/{x}/b", "..", ""}},
		{"/a/%C3%A9/b/%20", found{"/a/{x}/b/{y}", "é", " "}},
		{"/a/../b", found{"/a/{x}/b", "..", ""}},
		{"/a/{x}/b", found{"/a/{x}/b", "{x}", ""}},
		{"/%61", found{}},
		{"/z", found{}},
		{"/z/", found{Template: "/z/{x...}"}},
		{"/z/b//c%2Fd/..", found{"/z/{x...}", "b//c/d/..", ""}},
	} {
		t.Run(tc.in, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, tc.in, nil)
			r, _ = rt.Match(r.WithContext(httpapi.WithInfo(r.Context(), &httpapi.Info{})))
			got := found{Template: r.Pattern}
			got.X, _ = httpapi.PathIdentifier(r, "x")
			got.Y, _ = httpapi.PathIdentifier(r, "y")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTemplateThatIsNone(t *testing.T) {
	for _, template := range []string{"a", "/{", "/{}", "/{x", "/x}", "/{x:[}", "/{...}"} {
		t.Run(template, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it was taken")
				}
			}()
			httpapi.NewRouter().Get(template, nil)
		})
	}
}

func BenchmarkMatch(b *testing.B) {
	rt := httpapi.NewRouter()
	for _, template := range []string{"/projects/{projectId}/entries", "/projects/{projectId}/entries/{entryId}", "/projects/{projectId}/entries/{entryId}/events"} {
		rt.Get(template, func(http.ResponseWriter, *http.Request) error { return nil })
	}
	r := httptest.NewRequest(http.MethodGet, "/projects/pr_1/entries/en_1", nil)
	r = r.WithContext(httpapi.WithInfo(r.Context(), &httpapi.Info{}))
	b.ReportAllocs()
	for b.Loop() {
		if m, _ := rt.Match(r); m.Pattern == "" {
			b.Fatal("no route")
		}
	}
}
