package client

import (
	"io"
	"net/http"
	"reflect"
	"testing"
	"time"
)

// TestCallsAndTheirPaths checks the path of each call, and that it returns the server's answer.
func TestCallsAndTheirPaths(t *testing.T) {
	at := time.Date(2024, 7, 1, 2, 0, 0, 500e6, time.FixedZone("", 7200))
	for _, tt := range []struct {
		name   string
		call   func(*Client) (any, error)
		target string // method and request target
		body   string // of the request
		answer string
		want   any
	}{
		{"embeddables", func(c *Client) (any, error) {
			page, err := c.EmbeddablesPage(t.Context(), "p/1", EmbeddableQuery{Paging{PageSize: 3, Cursor: "c"}})
			return page.Records, err
		}, "GET /projects/p%2F1/embeddables?cursor=c&limit=3", "",
			`{"embeddable_id":"e","title":"T","group_id":"g","project_id":"p/1"}` + "\n", []Embeddable{{"e", "T", "g", "p/1"}}},
		{"embeddable", func(c *Client) (any, error) { return c.Embeddable(t.Context(), "p", "e 1") },
			"GET /projects/p/embeddables/e%201", "",
			`{"embeddable_id":"e 1","title":"T","group_id":"g","project_id":"p","json_string_prod":"{}"}`,
			EmbeddableWithDefinition{Embeddable{"e 1", "T", "g", "p"}, "{}"}},
		{"versions", func(c *Client) (any, error) {
			page, err := c.VersionsPage(t.Context(), "p", "e", VersionQuery{Direction: Ascending})
			return page.Records, err
		}, "GET /projects/p/embeddables/e/versions?direction=ASC&limit=1000", "",
			`{"embeddable_id":"e","version_number":9007199254740991,"saved_at":"2024-01-01T00:00:00Z"}` + "\n",
			[]EmbeddableVersion{{"e", 9007199254740991, time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}}},
		{"version", func(c *Client) (any, error) { return c.Version(t.Context(), "p", "e", 12) },
			"GET /projects/p/embeddables/e/versions/12", "",
			`{"embeddable_id":"e","version_number":12,"saved_at":"2024-01-01T00:00:00Z","json_string":"[1]"}`,
			EmbeddableVersionWithDefinition{EmbeddableVersion{"e", 12, time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}, "[1]"}},
		{"experiments", func(c *Client) (any, error) {
			page, err := c.ExperimentsPage(t.Context(), "p", ExperimentQuery{Status: WinnerPicked})
			return page.Records, err
		}, "GET /projects/p/experiments?limit=1000&status=winner_picked", "",
			`{"id":"x","impact_metrics":null,"no_impact_metrics":[],"status":"winner_picked","name":null,"winner_variant":"a"}` + "\n",
			[]Experiment{{ID: "x", NoImpactMetrics: []string{}, Status: new(WinnerPicked), WinnerVariant: new("a")}}},
		{"experiment", func(c *Client) (any, error) { return c.Experiment(t.Context(), "p", "x") },
			"GET /projects/p/experiments/x", "", `{"id":"x","experimentId":"x","status":null}`, Experiment{ID: "x", ExperimentID: "x"}},
		{"history", func(c *Client) (any, error) { return c.ExperimentHistory(t.Context(), "p", "x/1") },
			"GET /projects/p/experiments/x%2F1/history", "",
			`[{"status":null,"changed_at":"2024-01-01T00:00:00Z","recorded_at":"2024-01-01T00:00:01Z"},` +
				`{"status":"running","changed_at":"2024-01-02T00:00:00Z","recorded_at":"2024-01-02T00:00:01Z"}]` + "\n",
			[]ExperimentStatusChange{
				{nil, time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2024, 1, 1, 0, 0, 1, 0, time.UTC)},
				{new(Running), time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(2024, 1, 2, 0, 0, 1, 0, time.UTC)},
			}},
		{"project", func(c *Client) (any, error) { return c.Project(t.Context(), "p") },
			"GET /projects/p", "", `{"id":"p","title":"T"}`, Project{"p", "T"}},
		{"region", func(c *Client) (any, error) { return c.Region(t.Context(), "p", time.Time{}) },
			"POST /api/projects/region", `{"projectId":"p"}`, `{"region":"Asia/Kathmandu","offsetInMinutes":345}`, Region{"Asia/Kathmandu", 345}},
		{"region at a moment", func(c *Client) (any, error) { return c.Region(t.Context(), "p", at) },
			"POST /api/projects/region", `{"projectId":"p","at":"2024-07-01T00:00:00.5Z"}`, `{"region":"UTC","offsetInMinutes":0}`, Region{"UTC", 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tries := 0
			c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				if got := r.Method + " " + r.RequestURI; got != tt.target || string(body) != tt.body {
					t.Errorf("asked for %s with %q, want %s with %q", got, body, tt.target, tt.body)
				}
				if r.Method == http.MethodPost && r.Header.Get("Content-Type") != "application/json" {
					t.Errorf("the body's Content-Type is %q", r.Header.Get("Content-Type"))
				}
				if tries++; tries == 1 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				_, _ = io.WriteString(w, tt.answer)
			})
			got, err := tt.call(c)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
			}
			if tries != 2 {
				t.Errorf("%d requests, want one that is refused with Retry-After, and a retry", tries)
			}
		})
	}
}

func TestNewListsFollowCursors(t *testing.T) {
	pages := map[string]string{"": `{"embeddable_id":"a","id":"a"}`, "2": `{"embeddable_id":"b","id":"b"}`}
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		cursor := r.URL.Query().Get("cursor")
		if cursor == "" {
			w.Header().Set("X-Next-Cursor", "2")
		}
		_, _ = io.WriteString(w, pages[cursor]+"\n")
	})
	got := map[string]string{}
	add := func(list, id string, err error) {
		if err != nil {
			t.Fatal(err)
		}
		got[list] += id
	}
	for e, err := range c.Embeddables(t.Context(), "p", EmbeddableQuery{}) {
		add("embeddables", e.EmbeddableID, err)
	}
	for v, err := range c.Versions(t.Context(), "p", "e", VersionQuery{}) {
		add("versions", v.EmbeddableID, err)
	}
	for e, err := range c.Experiments(t.Context(), "p", ExperimentQuery{}) {
		add("experiments", e.ID, err)
	}
	if want := map[string]string{"embeddables": "ab", "versions": "ab", "experiments": "ab"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
