package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lectern-dev/lectern/shared/http/httpapi"

	"github.com/lectern-dev/lectern/services/entries/internal/insight"
)

// unchanged is a store whose data and insights stay the same.
type unchanged struct{ Insights }

func (unchanged) Version(context.Context, string) (int64, error) { return 7, nil }

func (unchanged) Counts(context.Context, insight.CountsQuestion) (int, []byte, error) {
	return 0, []byte("{}"), nil
}

// TestETagOfAnotherBuild checks that a corrected computation is read again, although the data is the same.
func TestETagOfAnotherBuild(t *testing.T) {
	var tag string
	for _, tt := range []struct {
		build string
		want  int
	}{{"1", http.StatusOK}, {"1", http.StatusNotModified}, {"2", http.StatusOK}} {
		a := &API{insights: func() Insights { return unchanged{} }, build: tt.build}
		rt := httpapi.NewRouter()
		rt.Get("/projects/{projectId}/entries-counts", a.counts)
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/projects/p/entries-counts", nil)
		r.Header.Set("If-None-Match", tag)
		rt.ServeHTTP(w, r.WithContext(httpapi.WithInfo(t.Context(), &httpapi.Info{})))
		if w.Code != tt.want {
			t.Errorf("build %s with the tag %q: %d, want %d", tt.build, tag, w.Code, tt.want)
		}
		tag = w.Header().Get("ETag")
	}
}
