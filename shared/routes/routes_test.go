package routes_test

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/http/httpapi"
	"github.com/lectern-dev/lectern/shared/routes"
)

// TestFindRouterAndRegexpAgree checks that three matchers find the same route for a path: the table, the services'
// router and the regular expressions of the ingress.
func TestFindRouterAndRegexpAgree(t *testing.T) {
	table := routes.Table(append(routes.Outside(), routes.Internal()...))
	router := httpapi.NewRouter()
	expressions := make([]*regexp.Regexp, len(table))
	for i, r := range table {
		operation := r.Operation
		router.Get(r.Template, func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Operation", operation)
			return nil
		})
		expressions[i] = regexp.MustCompile(routes.Regexp(r.Template))
	}
	random := rand.New(rand.NewPCG(3, 4))
	pieces := []string{
		"projects", "p", "entries", "entries-page-views", "events", "embeddables", "versions", "experiments", "history", "e", "api", "region",
		"openapi.yaml", "openapi.json", "openapixyaml", "docs", "proxy", "to", "for", "internal", "console", "%2F", "a%2fb", "%2E", ".", "..", "", "%C3%A4", "a b", "a+b", "~", "Projects", "x\n",
	}
	found := map[string]int{}
	for range 20_000 {
		var path strings.Builder
		// Most paths begin like existing routes, so that both outcomes occur.
		switch random.IntN(6) {
		case 0, 1:
			path.WriteString("/projects/p")
		case 2:
			path.WriteString("/console")
		case 3:
			path.WriteString("/proxy/to")
		case 4:
			path.WriteString("/proxy/for/p/e/to")
		}
		for range random.IntN(6) {
			path.WriteString("/" + pieces[random.IntN(len(pieces))])
		}
		u := &url.URL{}
		if parsed, err := url.Parse(path.String()); err == nil {
			u = parsed
		} else {
			u.Path = path.String()
		}
		escaped := u.EscapedPath()
		want := ""
		if r, ok := table.Find(escaped); ok {
			want = r.Operation
			found[r.Operation]++
		}

		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL = u
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		if got := w.Header().Get("Operation"); got != want {
			t.Fatalf("%q: the router serves %q, the table says %q", escaped, got, want)
		}
		var matching []string
		for i, e := range expressions {
			if e.MatchString(escaped) {
				matching = append(matching, table[i].Operation)
			}
		}
		if got := strings.Join(matching, " and "); got != want {
			t.Fatalf("%q: the expressions match %q, the table says %q", escaped, got, want)
		}
	}
	// Each of these routes has another kind of variables.
	for _, operation := range []string{"getProject", "getEntry", "redirectToConsole", "getConsole", "proxyTo", "proxyFor"} {
		if found[operation] < 20 {
			t.Errorf("only %d of the paths are %s's: too few", found[operation], operation)
		}
	}
}

func TestTableHoldsTogether(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range append(routes.Outside(), routes.Internal()...) {
		for _, key := range []string{r.Operation, r.Template} {
			if seen[key] {
				t.Errorf("%s stands twice", key)
			}
			seen[key] = true
		}
		if keyed := r.Auth == routes.APIKey || r.Auth == routes.Configured; (r.Scope != "") != (keyed && r.Operation != "getKey") {
			t.Errorf("%s: all operations with an API key but getKey need a scope, and no others, here %q of %s", r.Operation, r.Scope, r.Auth)
		}
		if internal := strings.HasPrefix(r.Template, "/internal/"); internal != (r.Auth == routes.IngestKey || r.Auth == routes.AdminKey) {
			t.Errorf("%s: exactly the routes under /internal take ingest or admin keys", r.Operation)
		}
		if r.Allows(http.MethodGet) != r.Allows(http.MethodHead) {
			t.Errorf("%s: GET and HEAD stand together", r.Operation)
		}
	}
	var got []string
	for _, r := range routes.Public() {
		if r.Service == routes.Region {
			got = append(got, r.Operation)
		}
	}
	want := []string{"getProject", "getKey", "listMyProjects", "lookUpProjectRegion", "getDescriptionYAML", "getDescriptionJSON", "getReference", "getReferenceAsset"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("region's routes (-want +got):\n%s", diff)
	}
	if r, _ := routes.Find("/proxy"); !r.Allows("PROPFIND") {
		t.Error("the proxy takes any method")
	}
	if r, _ := routes.Find("/projects/p"); r.Allows(http.MethodPost) {
		t.Error("a project is only read")
	}
}
