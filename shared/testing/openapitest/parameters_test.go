package openapitest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/httpapi"
	"github.com/lectern-dev/lectern/shared/routes"
	"github.com/lectern-dev/lectern/shared/testing/openapitest"
)

// TestServiceFaults checks that ServiceFaults finds a service whose routes or parameters differ from the description.
func TestServiceFaults(t *testing.T) {
	d := document(t)
	for _, tc := range []struct {
		name  string
		paths []string // if set, they replace experiments' own
		query func(q *httpapi.Query)
		names []string
		want  string // a part of a fault; empty: there is none
	}{
		{name: "as described", names: []string{"status", "limit", "cursor"}, query: asDescribed},
		{name: "a parameter too many", names: []string{"status", "limit", "cursor", "sort"}, query: asDescribed, want: `takes the parameters`},
		{name: "a parameter missing", names: []string{"limit", "cursor"}, query: asDescribed, want: `takes the parameters`},
		{name: "a value missing", names: []string{"status", "limit", "cursor"}, query: func(q *httpapi.Query) {
			asDescribed(q)
			q.Int("limit", 10, 1, 1000)
		}, want: "refuses the described limit=1000000"},
		{name: "no rule for a value", names: []string{"status", "limit", "cursor"}, query: func(*httpapi.Query) {}, want: "which is not described"},
		{name: "another's path", paths: []string{"/projects/{projectId}/experiments", "/projects/{projectId}/experiments/{experimentId}", "/projects/{projectId}/entries"},
			names: []string{"status", "limit", "cursor"}, query: asDescribed, want: "is entries's"},
		{name: "a path missing", paths: []string{"/projects/{projectId}/experiments"}, names: []string{"status", "limit", "cursor"}, query: asDescribed, want: "is experiments's"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			router := httpapi.NewRouter()
			paths := tc.paths
			if paths == nil {
				for _, r := range routes.Public() {
					if r.Service == routes.Experiments {
						paths = append(paths, r.Template)
					}
				}
			}
			for _, path := range paths {
				router.Get(path, func(_ http.ResponseWriter, r *http.Request) error {
					names, query := tc.names, tc.query
					if !strings.HasSuffix(path, "/experiments") { // only the list has parameters
						names, query = nil, func(*httpapi.Query) {}
					}
					q := httpapi.ParseQuery(r, names...)
					query(q)
					if err := q.Err(); err != nil {
						return err
					}
					return apierr.New(apierr.ExperimentNotFound, "none")
				})
			}
			faults := d.ServiceFaults(routes.Experiments, func(path string) openapitest.Answer {
				w := httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodGet, path, nil)
				router.ServeHTTP(w, r.WithContext(httpapi.WithInfo(r.Context(), httpapi.InfoFrom(r.Context()))))
				return openapitest.Answer{Method: "GET", Path: path, Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()}
			})
			if got := fmt.Sprint(faults); tc.want == "" && len(faults) > 0 || !strings.Contains(got, tc.want) {
				t.Errorf("faults %s; want %q", got, tc.want)
			}
		})
	}
}

func asDescribed(q *httpapi.Query) {
	q.Enum("status", "", "draft", "running", "paused", "winner_picked", "completed", "discarded")
	q.Int("limit", 10, 1, 1_000_000)
	if q.Has("cursor") {
		q.Fail("cursor", "none here")
	}
}
