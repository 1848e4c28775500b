package client

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestInsights checks the requests of all insights, and that their answers are read.
func TestInsights(t *testing.T) {
	answers := map[string]string{
		"/projects/pr_1/entries-counts?by=version&created_after=2026-09-01T00%3A00%3A00Z&interval=week&timezone=Europe%2FBerlin&version=0": `[
			{"from":"2026-08-31T22:00:00Z","to":"2026-09-06T22:00:00Z","embeddable_id":"e","version_number":0,"entries":3,"started":2,"completed":1},
			{"from":null,"to":null,"embeddable_id":"e","version_number":null,"entries":1,"started":0,"completed":0}]`,
		"/projects/pr_1/entries-funnel?by=version&embeddable_id=e": `[{"version_number":1,"entries":3,"started":2,"completed":1,"median_seconds":1.5,
			"pages":[{"page_index":0,"page_key":"a","reached":2,"dropped":1,"median_seconds":null}]}]`,
		"/projects/pr_1/entries-answers?embeddable_id=e": `{"entries":3,"unreadable":1,"keys":[{"key":"n","entries":2,"types":{"number":2}}]}`,
		"/projects/pr_1/entries-overview?interval=all": `{"intervals":[],"previous":null,"embeddables":[{"embeddable_id":"e","entries":2,"started":1,"completed":0,
			"previous":null,"largest_drop":{"page_index":0,"page_key":"a","reached":1,"dropped":1}}]}`,
		"/projects/pr_1/entries-answers?embeddable_id=e&values=2": `{"entries":3,"unreadable":0,"keys":[{"key":"n","entries":2,"types":{"number":2},
			"none":1,"multiple":0,"others":0,"values":[{"value":100,"entries":2}],"numbers":null}]}`,
		"/projects/pr_1/entries-answers?embeddable_id=e&key=n": `{"key":"n","entries":3,"unreadable":1,"none":0,"multiple":2,"others":1,"values":[{"value":[1],"entries":1}],"numbers":null}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers[r.RequestURI] == "" {
			t.Errorf("asked for %s", r.RequestURI)
		}
		_, _ = w.Write([]byte(answers[r.RequestURI]))
	}))
	defer server.Close()
	c, err := New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, version, of := t.Context(), int64(0), InsightFilter{EmbeddableID: "e"}
	since := InsightFilter{CreatedAfter: time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC), Version: &version}
	counts, err := c.EntryCounts(ctx, "pr_1", CountQuery{InsightFilter: since, Interval: "week", By: "version", Timezone: "Europe/Berlin"})
	if err != nil || len(counts) != 2 || *counts[0].VersionNumber != 0 || counts[1].From != nil {
		t.Errorf("%+v, %v", counts, err)
	}
	funnels, err := c.Funnels(ctx, "pr_1", FunnelQuery{InsightFilter: of, ByVersion: true})
	if err != nil || len(funnels) != 1 || *funnels[0].MedianSeconds != 1.5 || funnels[0].Pages[0].Reached != 2 {
		t.Errorf("%+v, %v", funnels, err)
	}
	overview, err := c.EntriesOverview(ctx, "pr_1", OverviewQuery{Interval: "all"})
	if err != nil || overview.Previous != nil || overview.Embeddables[0].LargestDrop.Dropped != 1 {
		t.Errorf("%+v, %v", overview, err)
	}
	keys, err := c.AnswerKeys(ctx, "pr_1", AnswerQuery{InsightFilter: of, Key: "ignored"})
	if err != nil || keys.Keys[0].Types["number"] != 2 {
		t.Errorf("%+v, %v", keys, err)
	}
	keys, err = c.AnswerKeys(ctx, "pr_1", AnswerQuery{InsightFilter: of, Values: 2})
	if err != nil || *keys.Keys[0].None != 1 || string(keys.Keys[0].Values[0].Value) != "100" {
		t.Errorf("%+v, %v", keys, err)
	}
	values, err := c.Answers(ctx, "pr_1", AnswerQuery{InsightFilter: of, Key: "n"})
	if err != nil || string(values.Values[0].Value) != "[1]" || values.Others != 1 || values.Multiple != 2 {
		t.Errorf("%+v, %v", values, err)
	}
}
