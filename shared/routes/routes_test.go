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

	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/routes"
)

func TestFind(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     string // operation; empty: none
	}{
		{"operation 1", "/projects/p/entries", "listEntries"},
		{"operation 2", "/projects/p/entries/e", "getEntry"},
		{"operation 3", "/projects/p/entries/e/events", "listEntryEvents"},
		{"operation 4", "/projects/p/entries-page-views", "listEntriesPageViews"},
		{"operation 5", "/projects/p/embeddables", "listEmbeddables"},
		{"operation 6", "/projects/p/embeddables/e/versions", "listEmbeddableVersions"},
		{"operation 7", "/projects/p/experiments", "listExperiments"},
		{"operation 8", "/projects/p/experiments/x", "getExperiment"},
		{"operation 9", "/api/projects/region", "lookUpProjectRegion"},
		{"embeddable", "/projects/p/embeddables/e", "getEmbeddable"},
		{"version", "/projects/p/embeddables/e/versions/3", "getEmbeddableVersion"},
		{"history", "/projects/p/experiments/x/history", "listExperimentStatusChanges"},
		{"project", "/projects/p", "getProject"},
		{"description", "/openapi.yaml", "getDescriptionYAML"},
		{"description as JSON", "/openapi.json", "getDescriptionJSON"},
		{"reference", "/docs", "getReference"},
		{"asset", "/docs/reference.js", "getReferenceAsset"},
		{"proxy", "/proxy", "proxy"},
		{"encoded slash", "/projects/a%2Fb/entries/c%2fd", "getEntry"},
		{"encoded Unicode", "/projects/%C3%A4/entries", "listEntries"},
		{"named like a word of the path", "/projects/entries/entries/entries", "getEntry"},
		{"dot", "/projects/./entries", "listEntries"},
		{"empty project", "/projects//entries", ""},
		{"trailing slash", "/projects/p/entries/", ""},
		{"no project", "/projects", ""},
		{"no project but a slash", "/projects/", ""},
		{"double slash", "//projects/p/entries", ""},
		{"case", "/Projects/p/entries", ""},
		{"encoded word", "/projects/p/%65ntries", ""},
		{"encoded separator", "/projects%2Fp/entries", ""},
		{"deeper", "/projects/p/entries/e/events/x", ""},
		{"root", "/", ""},
		{"empty", "", ""},
		{"asterisk", "*", ""},
		{"relative", "projects/p/entries", ""},
		{"internal", "/internal/entries", ""},
		{"keys", "/internal/projects/p/keys", ""},
		{"metrics", "/metrics", ""},
		{"below proxy", "/proxy/x", ""},
		{"below an asset", "/docs/a/b", ""},
		{"console", "/console", "redirectToConsole"},
		{"console's start", "/console/", "getConsole"},
		{"below the console", "/console/entries/a%2Fb/../c.d/", "getConsole"},
		{"double slash below the console", "/console//", "getConsole"},
		{"no console", "/consoles", ""},
		{"console after an encoded slash", "/console%2Fentries", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := routes.Find(tc.in)
			if got.Operation != tc.want || ok != (tc.want != "") {
				t.Errorf("Find(%q) = %q, %v; want %q", tc.in, got.Operation, ok, tc.want)
			}
		})
	}
}

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
		"openapi.yaml", "openapi.json", "openapixyaml", "docs", "proxy", "internal", "console", "%2F", "a%2fb", "%2E", ".", "..", "", "%C3%A4", "a b", "a+b", "~", "Projects", "x\n",
	}
	found := map[string]int{}
	for range 20_000 {
		var path strings.Builder
		// Most paths begin like existing routes, so that both outcomes occur.
		switch random.IntN(4) {
		case 0, 1:
			path.WriteString("/projects/p")
		case 2:
			path.WriteString("/console")
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
	for _, operation := range []string{"getProject", "getEntry", "redirectToConsole", "getConsole"} {
		if found[operation] < 20 {
			t.Errorf("only %d of the paths are %s's: too few", found[operation], operation)
		}
	}
}

func TestRegexp(t *testing.T) {
	for in, want := range map[string]string{
		"/projects/{projectId}":          `^/projects/[^/]+$`,
		"/projects/{projectId}/entries":  `^/projects/[^/]+/entries$`,
		"/openapi.yaml":                  `^/openapi\.yaml$`,
		"/projects/{a}/embeddables/{b}/": `^/projects/[^/]+/embeddables/[^/]+/$`,
		"/console/{path...}":             `^/console/.*$`,
	} {
		if got := routes.Regexp(in); got != want {
			t.Errorf("Regexp(%q) = %s, want %s", in, got, want)
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
		if (r.Scope != "") != (r.Auth == routes.APIKey || r.Auth == routes.Configured) {
			t.Errorf("%s: a scope is asked of API keys and of them alone, here %q of %s", r.Operation, r.Scope, r.Auth)
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
	want := []string{"getProject", "lookUpProjectRegion", "getDescriptionYAML", "getDescriptionJSON", "getReference", "getReferenceAsset"}
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
