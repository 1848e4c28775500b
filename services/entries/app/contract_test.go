package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

const project = "pr_1"

// demo is [shared] with the records of demonstrate.
func demo(t *testing.T) (s *servicetest.Service, project, key string) {
	t.Helper()
	s, project, key = shared(t)
	demonstrate(t, s, project)
	return s, project, key
}

// demonstrate stores three entries. The first has three events, two of them page views. The last has none.
func demonstrate(t *testing.T, s *servicetest.Service, project string) {
	t.Helper()
	s.MustIngest(t, "entries", newEntry(project, "en_1", at(1)), newEntry(project, "en_2", at(2)), newEntry(project, "en_3", at(3)),
		newEntry("pr_2", "en_other", at(4)))
	s.MustIngest(t, "events",
		servicetest.With(pageView(project, "en_1", 2, at(20)), "url", "https://example.com/two"),
		pageView(project, "en_1", 1, at(10)),
		customEvent(project, "en_1", at(15)),
		pageView(project, "en_2", 1, at(11)))
}

func customEvent(project, entry string, when time.Time) object {
	e := pageView(project, entry, 1, when)
	for _, name := range []string{"page_id", "page_key", "page_index", "max_page_id", "max_page_key", "max_page_index", "total_pages", "view_type", "embeddable_version_number"} {
		e[name] = nil
	}
	e["event_type"], e["custom_event_name"], e["custom_event_props"] = "custom_event:triggered", "clicked", `{"button":"go"}`
	return e
}

func TestListEntries(t *testing.T) {
	t.Parallel()
	s, project, key := demo(t)
	tests := []struct {
		query string
		want  []string
	}{
		{"", []string{"en_3", "en_2", "en_1"}},
		{"?direction=ASC", []string{"en_1", "en_2", "en_3"}},
		{"?direction=desc&sort=last_updated", []string{"en_3", "en_2", "en_1"}},
		{"?sort=updated_at&limit=2", []string{"en_3", "en_2"}},
		{"?sort=created_at&direction=asc", []string{"en_1", "en_2", "en_3"}},
		{"?sort=created_at", []string{"en_3", "en_2", "en_1"}},
		{"?updated_after=2022-01-01T00:00:01Z", []string{"en_3", "en_2"}},
		{"?updated_before=2022-01-01T00:00:03Z", []string{"en_2", "en_1"}},
		{"?updated_after=2022-01-01T00:00:01Z&updated_before=2022-01-01T00:00:03Z", []string{"en_2"}},
		{"?updated_after=2022-01-01T02:00:01+02:00&direction=ASC", []string{"en_2", "en_3"}},
		{"?updated_after=2022-01-01T00:00:01Z&sort=created_at", []string{"en_3", "en_2"}},
		{"?updated_after=2022-01-02", []string{}},
		{"?updated_after=2022-01-01T00:00:03&updated_before=2022-01-01", []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			got, _ := s.List(t, key, "/projects/"+project+"/entries"+tt.query)
			if diff := cmp.Diff(tt.want, servicetest.Column(got, "entry_id")); diff != "" {
				t.Error(diff)
			}
		})
	}
	got, a := s.List(t, key, "/projects/"+project+"/entries?limit=1")
	want := object{
		"entry_id": "en_3", "group_id": "gr_1", "project_id": project, "embeddable_id": "emb_1", "contact_id": "co_1",
		"created_at": "2022-01-01T00:00:00Z", "updated_at": "2022-01-01T00:00:03Z", "entry_data": `{"entry":"en_3"}`,
	}
	if diff := cmp.Diff([]object{want}, got); diff != "" {
		t.Error(diff)
	}
	if ct := a.Header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("Content-Type %q", ct)
	}
}

func TestDefaultLimitIsTen(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	fill(t, s, project, 25)
	for path, field := range map[string]string{"entries": "entry_id", "entries-page-views": "entry_id"} {
		list, a := s.List(t, key, "/projects/"+project+"/"+path)
		if len(list) != 10 || a.Header.Get("X-Next-Cursor") == "" {
			t.Errorf("%s: %d of 25, next %q", path, len(servicetest.Column(list, field)), a.Header.Get("X-Next-Cursor"))
		}
	}
	var events []any
	for i := range 12 {
		events = append(events, pageView(project, "en_0000001", i, at(i)))
	}
	s.MustIngest(t, "events", events...)
	if list, _ := s.List(t, key, "/projects/"+project+"/entries/en_0000001/events"); len(list) != 10 {
		t.Errorf("events: %d", len(list))
	}
}

func TestGetEntry(t *testing.T) {
	t.Parallel()
	s, project, key := demo(t)
	a := s.Get(t, key, "/projects/"+project+"/entries/en_2")
	var got object
	a.JSON(t, &got)
	if diff := cmp.Diff(newEntry(project, "en_2", at(2)), got); a.Status != 200 || diff != "" {
		t.Errorf("%d %s", a.Status, diff)
	}
	odd := []string{"a/b", "ünï", "100%", "a b", "?#&=", ".", "..", "x~y", strings.Repeat("é", 128)}
	for _, id := range odd {
		s.MustIngest(t, "entries", newEntry(project, id, at(9)))
		a := s.Get(t, key, "/projects/"+project+"/entries/"+url.PathEscape(id))
		if id == "." || id == ".." { // url.PathEscape does not escape these, and Go's HTTP client cleans such paths
			a = s.Get(t, key, "/projects/"+project+"/entries/"+strings.ReplaceAll(id, ".", "%2E"))
		}
		var got object
		if a.JSON(t, &got); a.Status != 200 || got["entry_id"] != id {
			t.Errorf("%q: %d %s", id, a.Status, a.Body)
		}
	}
}

func TestGetEntryEvents(t *testing.T) {
	t.Parallel()
	s, project, key := demo(t)
	for query, want := range map[string][]string{
		"":                       {"2022-01-01T00:00:20Z", "2022-01-01T00:00:15Z", "2022-01-01T00:00:10Z"},
		"?direction=ASC":         {"2022-01-01T00:00:10Z", "2022-01-01T00:00:15Z", "2022-01-01T00:00:20Z"},
		"?direction=ASC&limit=1": {"2022-01-01T00:00:10Z"},
	} {
		got, _ := s.List(t, key, "/projects/"+project+"/entries/en_1/events"+query)
		if diff := cmp.Diff(want, servicetest.Column(got, "timestamp")); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	got, _ := s.List(t, key, "/projects/"+project+"/entries/en_1/events?direction=asc")
	number := func(o object) object { // converts numbers to those of encoding/json
		b, _ := json.Marshal(o)
		var c object
		_ = json.Unmarshal(b, &c)
		return c
	}
	want := []object{number(pageView(project, "en_1", 1, at(10))), number(customEvent(project, "en_1", at(15))), number(pageView(project, "en_1", 2, at(20)))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if none, _ := s.List(t, key, "/projects/"+project+"/entries/en_3/events"); none == nil || len(none) != 0 {
		t.Errorf("an entry without events: %v", none)
	}
	// Events with equal timestamps are in the order of arrival.
	var equal []any
	for i := range 20 {
		equal = append(equal, pageView(project, "en_3", i, at(5)))
	}
	s.MustIngest(t, "events", equal...)
	list := s.Walk(t, key, "/projects/"+project+"/entries/en_3/events?direction=ASC&limit=3", nil)
	for i, e := range list {
		if e["page_index"] != float64(i) {
			t.Fatalf("event %d is page %v: not in order of arrival", i, e["page_index"])
		}
	}
}

func TestListPageViews(t *testing.T) {
	t.Parallel()
	s, project, key := demo(t)
	view := func(n int, when string, url any) object {
		v := object{"timestamp": when, "page_id": fmt.Sprintf("pg_%d", n), "page_key": fmt.Sprintf("page-%d", n), "page_index": float64(n)}
		if url != servicetest.Absent {
			v["url"] = url
		}
		return v
	}
	item := func(id string, updated int, views ...any) object {
		o := newEntry(project, id, at(updated))
		delete(o, "entry_data")
		if views == nil {
			views = []any{}
		}
		o["page_views"] = views
		return o
	}
	for query, want := range map[string][]object{
		"": {
			item("en_3", 3),
			item("en_2", 2, view(1, "2022-01-01T00:00:11Z", servicetest.Absent)),
			item("en_1", 1, view(1, "2022-01-01T00:00:10Z", servicetest.Absent), view(2, "2022-01-01T00:00:20Z", servicetest.Absent)),
		},
		"?direction=asc&limit=1&include_urls=true": {
			item("en_1", 1, view(1, "2022-01-01T00:00:10Z", nil), view(2, "2022-01-01T00:00:20Z", "https://example.com/two")),
		},
		"?updated_after=2022-01-01T00:00:01Z&updated_before=2022-01-01T00:00:03Z&include_urls=false": {
			item("en_2", 2, view(1, "2022-01-01T00:00:11Z", servicetest.Absent)),
		},
	} {
		got, _ := s.List(t, key, "/projects/"+project+"/entries-page-views"+query)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"MAX_LIMIT": "1000"})
	demonstrate(t, s, project)
	key := s.Keys.Key(project)
	narrow := s.Keys.Key(project, auth.EmbeddablesRead)
	other := s.Keys.Key("pr_2")
	_, expired := s.Keys.Minted(pgkeys.MintOptions{ProjectID: project})
	if _, err := s.Keys.Revoke(t.Context(), project, expired.ID); err != nil {
		t.Fatal(err)
	}
	revoked, r := s.Keys.Minted(pgkeys.MintOptions{ProjectID: project})
	if _, err := s.Keys.Revoke(t.Context(), project, r.ID); err != nil {
		t.Fatal(err)
	}
	const (
		list   = "/projects/pr_1/entries"
		one    = "/projects/pr_1/entries/en_1"
		events = "/projects/pr_1/entries/en_1/events"
		views  = "/projects/pr_1/entries-page-views"
	)
	unauthorized := object{
		"error":     object{"code": "unauthorized", "message": "You are not authorized to access this project with the API key provided."},
		"projectId": "pr_1",
	}
	invalid := func(parameter string) object { return object{"projectId": "pr_1", "parameter": parameter} }
	refusals := []struct {
		Name, Method, Path, Key string
		Status                  int
		Code                    string
		Rest                    object
	}{
		{"no key", "", list, "", 401, "unauthorized", object{"projectId": "pr_1"}},
		{"malformed key", "", list, "nonsense", 401, "unauthorized", object{"projectId": "pr_1"}},
		{"wrong checksum", "", list, key[:len(key)-1] + "!", 401, "unauthorized", object{"projectId": "pr_1"}},
		{"unknown key", "", list, mintElsewhere(), 401, "unauthorized", object{"projectId": "pr_1"}},
		{"another project's key", "", list, other, 401, "unauthorized", object{"projectId": "pr_1"}},
		{"revoked key", "", list, revoked, 401, "unauthorized", object{"projectId": "pr_1"}},
		{"ingest key", "", list, servicetest.IngestKey, 401, "unauthorized", object{"projectId": "pr_1"}},
		{"one, no key", "", one, "", 401, "unauthorized", object{"projectId": "pr_1"}},
		{"events, no key", "", events, "", 401, "unauthorized", object{"projectId": "pr_1"}},
		{"page views, no key", "", views, "", 401, "unauthorized", object{"projectId": "pr_1"}},
		{"scope", "", list, narrow, 403, "insufficient_scope", object{"projectId": "pr_1"}},
		{"scope before parameters", "", list + "?limit=0", narrow, 403, "insufficient_scope", object{"projectId": "pr_1"}},
		{"key before parameters", "", list + "?limit=0", "", 401, "unauthorized", object{"projectId": "pr_1"}},
		{"method before key", "POST", list, "", 405, "method_not_allowed", object{}},
		{"path before method", "POST", "/nope", "", 404, "route_not_found", object{}},
		{"DELETE", "DELETE", one, key, 405, "method_not_allowed", object{}},
		{"OPTIONS without CORS", "OPTIONS", one, key, 405, "method_not_allowed", object{}},
		{"unknown path", "", "/projects/pr_1/entries/en_1/nope", key, 404, "route_not_found", object{}},
		{"trailing slash", "", list + "/", key, 404, "route_not_found", object{}},
		{"empty project", "", "/projects//entries", key, 404, "route_not_found", object{}},
		{"double slash", "", "//projects/pr_1/entries", key, 404, "route_not_found", object{}},
		{"case", "", "/Projects/pr_1/entries", key, 404, "route_not_found", object{}},
		{"internal path", "", "/internal/entries", key, 404, "route_not_found", object{}},
		{"metrics", "", "/metrics", key, 404, "route_not_found", object{}},
		{"no such entry", "", "/projects/pr_1/entries/en_9", key, 404, "entry_not_found", object{"entryId": "en_9"}},
		{"another project's entry", "", "/projects/pr_1/entries/en_other", key, 404, "entry_not_found", object{"entryId": "en_other"}},
		{"events of no entry", "", "/projects/pr_1/entries/en_9/events", key, 404, "entry_not_found", object{"entryId": "en_9"}},
		{"events of another project's entry", "", "/projects/pr_1/entries/en_other/events", key, 404, "entry_not_found", object{"entryId": "en_other"}},
		{"parameters before record", "", "/projects/pr_1/entries/en_9/events?limit=0", key, 400, "invalid_parameter", invalid("limit")},
		{"limit over MAX_LIMIT", "", list + "?limit=1001", key, 400, "invalid_parameter", invalid("limit")},
		{"updated_before", "", views + "?updated_before=2022-02-30", key, 400, "invalid_parameter", invalid("updated_before")},
		{"NUL in group_id", "", list + "?group_id=a%00b", key, 400, "invalid_parameter", invalid("group_id")},
		{"broken UTF-8 in contact_id", "", views + "?contact_id=%ff", key, 400, "invalid_parameter", invalid("contact_id")},
		{"two contacts", "", list + "?contact_id=a&contact_id=b", key, 400, "invalid_parameter", invalid("contact_id")},
		{"twice", "", list + "?limit=1&limit=1", key, 400, "invalid_parameter", invalid("limit")},
		{"long entry id", "", "/projects/pr_1/entries/" + strings.Repeat("x", 257), key, 400, "invalid_parameter", invalid("entryId")},
		{"NUL in entry id", "", "/projects/pr_1/entries/a%00b", key, 400, "invalid_parameter", invalid("entryId")},
		{"broken UTF-8 in entry id", "", "/projects/pr_1/entries/%ff/events", key, 400, "invalid_parameter", invalid("entryId")},
		{"NUL in project id", "", "/projects/a%00b/entries", key, 401, "unauthorized", nil},
		{"long project id", "", "/projects/" + strings.Repeat("x", 300) + "/entries", key, 401, "unauthorized", nil},
	}
	for _, refusal := range refusals {
		s.CheckRefusals(t, []servicetest.Refusal{servicetest.Refusal(refusal)})
	}
	// All refused keys get the same answer.
	var got object
	a := s.Get(t, revoked, list)
	if a.JSON(t, &got); cmp.Diff(unauthorized, got) != "" {
		t.Error(cmp.Diff(unauthorized, got))
	}
	var missing object
	if s.Get(t, key, "/projects/pr_1/entries/en_9").JSON(t, &missing); cmp.Diff(object{
		"error":   object{"code": "entry_not_found", "message": "The entry with the specified ID does not exist or you don't have permission to access it."},
		"entryId": "en_9",
	}, missing) != "" {
		t.Errorf("%v", missing)
	}
}

func mintElsewhere() string {
	key, _ := auth.Mint()
	return key.Reveal()
}

func TestRepresentation(t *testing.T) {
	t.Parallel()
	s, project, key := demo(t)
	many := project + "_many"
	fill(t, s, many, 3000)
	s.CheckRepresentation(t, key, "/projects/"+project+"/entries", "/projects/"+project+"/entries/en_1", "/projects/"+project+"/entries/en_1/events", "/projects/"+project+"/entries-page-views?limit=1")
	s.CheckRepresentation(t, s.Keys.Key(many), "/projects/"+many+"/entries?limit=100", "/projects/"+many+"/entries-page-views?limit=100")
	s.CheckPaging(t, key, "/projects/"+project+"/entries?limit=1&sort=created_at&updated_after=2022-01-01T02:00:00+02:00",
		"/projects/"+project+"/entries-page-views?limit=2&direction=asc&include_urls=true", "/projects/"+project+"/entries/en_1/events?limit=1")
	// The tag covers the next cursor: a page that gets a next page gets a new tag.
	before := s.Get(t, key, "/projects/"+project+"/entries?direction=asc&limit=3").Header
	s.MustIngest(t, "entries", newEntry(project, "en_4", at(4)))
	if after := s.Get(t, key, "/projects/"+project+"/entries?direction=asc&limit=3").Header; after.Get("ETag") == before.Get("ETag") || before.Get("Link") != "" {
		t.Errorf("the last page has Link %q, and the tag %s with and without a next page", before.Get("Link"), after.Get("ETag"))
	}
}

func TestNDJSON(t *testing.T) {
	t.Parallel()
	s, project, key := demo(t)
	for accept, want := range map[string]string{
		"application/x-ndjson":                          "application/x-ndjson",
		"text/html, application/x-ndjson;q=0.9":         "application/x-ndjson",
		"application/json, application/x-ndjson;q=0.5":  "application/json",
		"application/x-ndjson;q=0":                      "application/json",
		"*/*":                                           "application/json",
		"text/csv":                                      "application/json",
		"application/json;q=0.1, application/x-ndjson ": "application/x-ndjson",
	} {
		a := s.Do(t, servicetest.Request{Path: "/projects/" + project + "/entries?direction=asc", Key: key, Headers: map[string]string{"Accept": accept}})
		if got := a.Header.Get("Content-Type"); a.Status != 200 || got != want {
			t.Errorf("Accept %q: %d %s", accept, a.Status, got)
		}
		if want == "application/json" {
			continue
		}
		lines := bytes.Split(bytes.TrimSuffix(a.Body, []byte("\n")), []byte("\n"))
		if len(lines) != 3 {
			t.Fatalf("%d lines: %s", len(lines), a.Body)
		}
		for i, line := range lines {
			var o object
			if err := json.Unmarshal(line, &o); err != nil || o["entry_id"] != fmt.Sprintf("en_%d", i+1) {
				t.Errorf("line %d: %s", i, line)
			}
		}
	}
	empty := s.Do(t, servicetest.Request{Path: "/projects/" + project + "/entries?updated_after=2030-01-01", Key: key, Headers: map[string]string{"Accept": "application/x-ndjson"}})
	if empty.Status != 200 || len(empty.Body) != 0 {
		t.Errorf("an empty list as NDJSON: %d %q", empty.Status, empty.Body)
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"RATE_LIMIT": "5"})
	key := s.Keys.Key(project)
	narrow := s.Keys.Key(project, auth.EmbeddablesRead)
	get := func(key, path string) servicetest.Answer { return s.Get(t, key, path) }
	refused := servicetest.CheckRate(t, 5, func() servicetest.Answer {
		a := get(key, "/projects/pr_1/entries")
		if !regexp.MustCompile(`^"default";r=\d+;t=\d+$`).MatchString(a.Header.Get("RateLimit")) || a.Header.Get("RateLimit-Policy") != `"default";q=10;w=2` {
			t.Errorf("RateLimit %q, RateLimit-Policy %q", a.Header.Get("RateLimit"), a.Header.Get("RateLimit-Policy"))
		}
		return a
	})
	var body struct {
		Error     struct{ Code string }
		ProjectID string
	}
	refused.JSON(t, &body)
	if body.Error.Code != "rate_limited" || body.ProjectID != project || refused.Header.Get("Retry-After") == "" {
		t.Errorf("%s, Retry-After %q", refused.Body, refused.Header.Get("Retry-After"))
	}
	for _, path := range []string{"/projects/pr_1/entries", "/projects/pr_1/entries?limit=0", "/projects/pr_1/entries/en_9"} {
		for _, k := range []string{narrow, s.Keys.Key(project)} {
			if a := get(k, path); a.Header.Get("RateLimit") == "" {
				t.Errorf("%s: %d without RateLimit", path, a.Status)
			}
		}
	}
	if a := get("", "/projects/pr_1/entries"); a.Header.Get("RateLimit") != "" {
		t.Errorf("RateLimit %q without a key", a.Header.Get("RateLimit"))
	}
}
