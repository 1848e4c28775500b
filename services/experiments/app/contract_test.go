package app

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

func TestListExperiments(t *testing.T) {
	t.Parallel()
	s, project := demo(t)
	for query, want := range map[string][]string{
		"":                                      {"ex_7", "ex_6", "ex_5", "ex_4", "ex_3", "ex_8", "ex_2", "ex_1"},
		"?limit=3":                              {"ex_7", "ex_6", "ex_5"},
		"?status=draft":                         {"ex_1"},
		"?status=running":                       {"ex_8", "ex_2"},
		"?status=paused":                        {"ex_3"},
		"?status=winner_picked":                 {"ex_4"},
		"?status=completed":                     {"ex_5"},
		"?status=discarded&limit=5":             {"ex_6"},
		"?status=running&limit=1":               {"ex_8"},
		"?limit=1000000&status=w%69nner_picked": {"ex_4"},
	} {
		list, _ := s.List(t, "", "/projects/"+project+"/experiments"+query)
		if diff := cmp.Diff(want, servicetest.Column(list, "id")); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	for _, path := range []string{"/projects/pr_unknown/experiments", "/projects/pr_2/experiments?status=draft"} {
		if a := s.Get(t, "", path); a.Status != 200 || string(a.Body) != "[]\n" {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
}

func TestGetExperiment(t *testing.T) {
	t.Parallel()
	s, project := demo(t)
	// Every field, in the document's order.
	const full = `{"id":"ex_2","experimentId":"ex_2","flowId":"emb_1","name":"Name of ex_2","hypothesis":"It helps.",` +
		`"impact_metrics":["conversion","time \"on\" page"],"no_impact_metrics":[],"created_at":"2022-01-01T00:00:02Z","updated_at":"2022-01-01T00:00:02Z",` +
		`"observations":"none","outcome":"open","attachments":"[ {\"url\":\"https://example.com/a.png\",\"name\":\"a\"} ]",` +
		`"variants":"{\"control\":{\"weight\":1.0},\"variant_a\":{\"weight\":1}}","flow_ids":["emb_1","emb_2"],` +
		`"paused_showing_variant":"control","winner_variant":"variant_a","status":"running"}`
	if a := s.Get(t, "", "/projects/"+project+"/experiments/ex_2"); a.Status != 200 || string(a.Body) != full+"\n" {
		t.Errorf("%d %s\nwant %s", a.Status, a.Body, full)
	}
	if a := s.Get(t, "", "/projects/"+project+"/experiments?status=running"); !bytes.Contains(a.Body, []byte(full)) {
		t.Errorf("the list has it otherwise: %s", a.Body)
	}
	// A field that is null or absent is returned as null.
	bare := object{"project_id": project, "id": "ex_9", "experimentId": "ex_9", "flowId": "emb_1", "created_at": at(1), "updated_at": at(2)}
	want := given(bare)
	for _, name := range []string{"name", "hypothesis", "impact_metrics", "no_impact_metrics", "observations", "outcome", "attachments",
		"variants", "flow_ids", "paused_showing_variant", "winner_variant", "status"} {
		want[name] = nil
	}
	s.MustIngest(t, "experiments", bare)
	var got object
	s.Get(t, "", "/projects/"+project+"/experiments/ex_9").JSON(t, &got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, id := range []string{"a/b", "ünï", "100%", "a b", "?#&=", ".", "..", "history", strings.Repeat("é", 128)} {
		s.MustIngest(t, "experiments", newExperiment(project, id, 1, "draft"))
		escaped := strings.ReplaceAll(url.PathEscape(id), ".", "%2E")
		a := s.Get(t, "", "/projects/"+project+"/experiments/"+escaped)
		if a.JSON(t, &got); a.Status != 200 || got["id"] != id || got["experimentId"] != id {
			t.Errorf("%q: %d %s", id, a.Status, a.Body)
		}
	}
}

func TestWithoutLimitAllCome(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"MAX_LIMIT": "1000"})
	const n = 12_000
	fill(t, s, project, n)
	for query, want := range map[string]int{"": n, "?status=draft": n / 3} {
		for _, accept := range []string{"application/json", "application/x-ndjson"} {
			a := s.Do(t, servicetest.Request{Path: "/projects/pr_1/experiments" + query, Headers: map[string]string{"Accept": accept}})
			if got := bytes.Count(a.Body, []byte(`"experimentId"`)); a.Status != 200 || a.Err != nil || got != want || a.Header.Get("Link") != "" {
				t.Errorf("%s as %s: %d, %d of %d, Link %q, %v", query, accept, a.Status, got, want, a.Header.Get("Link"), a.Err)
			}
			if a.Header.Get("Content-Type") != accept {
				t.Errorf("Content-Type %q", a.Header.Get("Content-Type"))
			}
		}
		all, _ := s.List(t, "", "/projects/pr_1/experiments"+query)
		pages := strings.Replace("/projects/pr_1/experiments"+query, "?", "?limit=700&", 1)
		if query == "" {
			pages += "?limit=700"
		}
		if diff := cmp.Diff(all, s.Walk(t, "", pages, nil)); diff != "" {
			t.Errorf("%s: %s", pages, diff)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"MAX_LIMIT": "1000"})
	demonstrate(t, s, project)
	const (
		list = "/projects/pr_1/experiments"
		one  = "/projects/pr_1/experiments/ex_1"
	)
	invalid := func(parameter string) object { return object{"projectId": "pr_1", "parameter": parameter} }
	missing := func(id string) object { return object{"projectId": "pr_1", "experimentId": id} }
	s.CheckRefusals(t, []servicetest.Refusal{
		{Name: "method", Method: "POST", Path: list, Status: 405, Code: "method_not_allowed", Rest: object{}},
		{Name: "DELETE", Method: "DELETE", Path: one, Status: 405, Code: "method_not_allowed", Rest: object{}},
		{Name: "path before method", Method: "POST", Path: "/nope", Status: 404, Code: "route_not_found", Rest: object{}},
		{Name: "unknown path", Path: one + "/nope", Status: 404, Code: "route_not_found", Rest: object{}},
		{Name: "trailing slash", Path: list + "/", Status: 404, Code: "route_not_found", Rest: object{}},
		{Name: "empty project", Path: "/projects//experiments", Status: 404, Code: "route_not_found", Rest: object{}},
		{Name: "ingest is not public", Method: "POST", Path: "/internal/experiments", Status: 404, Code: "route_not_found", Rest: object{}},
		{Name: "no such experiment", Path: list + "/ex_99", Status: 404, Code: "experiment_not_found", Rest: missing("ex_99")},
		{Name: "another project's experiment", Path: list + "/ex_other", Status: 404, Code: "experiment_not_found", Rest: missing("ex_other")},
		{Name: "history of no experiment", Path: list + "/ex_99/history", Status: 404, Code: "experiment_not_found", Rest: missing("ex_99")},
		{Name: "history of another project's experiment", Path: list + "/ex_other/history", Status: 404, Code: "experiment_not_found", Rest: missing("ex_other")},
		{Name: "parameters before record", Path: list + "/ex_99?limit=1", Status: 400, Code: "invalid_parameter", Rest: invalid("limit")},
		{Name: "no such status", Path: list + "?status=done", Status: 400, Code: "invalid_parameter", Rest: invalid("status")},
		{Name: "status in another case", Path: list + "?status=Draft", Status: 400, Code: "invalid_parameter", Rest: invalid("status")},
		{Name: "two statuses", Path: list + "?status=draft&status=running", Status: 400, Code: "invalid_parameter", Rest: invalid("status")},
		{Name: "limit over MAX_LIMIT", Path: list + "?limit=1001", Status: 400, Code: "invalid_parameter", Rest: invalid("limit")},
		{Name: "long experiment id of a history", Path: list + "/" + strings.Repeat("x", 257) + "/history", Status: 400, Code: "invalid_parameter", Rest: invalid("experimentId")},
		{Name: "long experiment id", Path: list + "/" + strings.Repeat("x", 257), Status: 400, Code: "invalid_parameter", Rest: invalid("experimentId")},
		{Name: "NUL in experiment id", Path: list + "/a%00b", Status: 400, Code: "invalid_parameter", Rest: invalid("experimentId")},
		{Name: "NUL in project id", Path: "/projects/a%00b/experiments", Status: 400, Code: "invalid_parameter"},
		{Name: "long project id", Path: "/projects/" + strings.Repeat("x", 257) + "/experiments/ex_1", Status: 400, Code: "invalid_parameter"},
		{Name: "broken UTF-8 in project id", Path: "/projects/%ff/experiments", Status: 400, Code: "invalid_parameter", Rest: object{"projectId": nil, "parameter": "projectId"}},
	})
}

func TestRepresentation(t *testing.T) {
	t.Parallel()
	s, project := demo(t)
	many := project + "_many"
	fill(t, s, many, 400)
	s.CheckRepresentation(t, "", "/projects/"+project+"/experiments", "/projects/"+project+"/experiments?limit=2", "/projects/"+project+"/experiments?status=paused",
		"/projects/"+project+"/experiments/ex_1", "/projects/"+project+"/experiments/ex_1/history", "/projects/"+many+"/experiments", "/projects/pr_unknown/experiments")
	s.CheckPaging(t, "", "/projects/"+project+"/experiments?limit=1", "/projects/"+project+"/experiments?status=running&limit=1", "/projects/"+many+"/experiments?limit=300")
}

// TestAccess checks each value of EXPERIMENTS_AUTH with and without keys.
func TestAccess(t *testing.T) {
	t.Parallel()
	shown := start(t, nil)
	demonstrate(t, shown, project)
	b := shown.Backing
	good, narrow, other := b.Keys.Key(project), b.Keys.Key(project, auth.EntriesRead), b.Keys.Key("pr_2")
	for _, tt := range []struct {
		access                            string
		none, good, narrow, other, broken int
	}{
		{"", 200, 200, 200, 200, 200},
		{"none", 200, 200, 200, 200, 200},
		{"optional", 200, 200, 403, 401, 401},
		{"required", 401, 200, 403, 401, 401},
	} {
		t.Run(tt.access, func(t *testing.T) {
			s := startOn(t, b, map[string]string{"EXPERIMENTS_AUTH": tt.access})
			for _, path := range []string{"/projects/pr_1/experiments", "/projects/pr_1/experiments/ex_1", "/projects/pr_1/experiments/ex_1/history"} {
				for _, k := range []struct {
					name, key string
					want      int
				}{{"none", "", tt.none}, {"good", good, tt.good}, {"narrow", narrow, tt.narrow}, {"of another project", other, tt.other}, {"broken", "nonsense", tt.broken}} {
					a := s.Get(t, k.key, path)
					if a.Status != k.want {
						t.Fatalf("%s, key %s: %d, want %d", path, k.name, a.Status, k.want)
					}
					servicetest.CheckError(t, a, k.want, map[int]string{401: "unauthorized", 403: "insufficient_scope"}[k.want], object{"projectId": project})
				}
			}
		})
	}
	var cfg Config
	err := config.Load(&cfg, map[string]string{"EXPERIMENTS_AUTH": "maybe"})
	if err == nil || !strings.Contains(err.Error(), "EXPERIMENTS_AUTH") || !strings.Contains(err.Error(), "none, optional, required") {
		t.Errorf("EXPERIMENTS_AUTH=maybe: %v", err)
	}
}

// TestAnonymousRate checks that requests without keys are counted by client address.
func TestAnonymousRate(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"ANON_RATE_LIMIT": "5"})
	refused := servicetest.CheckRate(t, 5, func() servicetest.Answer { return s.Get(t, "", "/projects/pr_1/experiments") })
	servicetest.CheckError(t, refused, 429, "rate_limited", object{"projectId": project})
}

// TestWithoutIngest checks that a service without INGEST_DATABASE_URL stores no records.
func TestWithoutIngest(t *testing.T) {
	t.Parallel()
	shown := start(t, nil)
	demonstrate(t, shown, project)
	b := shown.Backing
	s := startOn(t, b, map[string]string{"INGEST_DATABASE_URL": ""})
	if a := s.DoInternal(t, servicetest.Request{Method: "POST", Path: "/internal/experiments", Key: servicetest.IngestKey}); a.Status != 404 {
		t.Errorf("ingest: %d %s", a.Status, a.Body)
	}
}
