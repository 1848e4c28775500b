package app

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

func TestListEmbeddables(t *testing.T) {
	t.Parallel()
	s, project, key := demo(t)
	for query, want := range map[string][]string{
		"":          {"emb_1", "emb_2", "emb_3"},
		"?limit=2":  {"emb_1", "emb_2"},
		"?limit=10": {"emb_1", "emb_2", "emb_3"},
	} {
		list, _ := s.List(t, key, "/projects/"+project+"/embeddables"+query)
		if diff := cmp.Diff(want, servicetest.Column(list, "embeddable_id")); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	// Exactly the four fields, in the document's order.
	a := s.Get(t, key, "/projects/"+project+"/embeddables?limit=1")
	want := `[{"embeddable_id":"emb_1","title":"Title of emb_1","group_id":"gr_1","project_id":"` + project + `"}]` + "\n"
	if string(a.Body) != want || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s, want %s", a.Header.Get("Content-Type"), a.Body, want)
	}
	if list, _ := s.List(t, s.Keys.Key("pr_empty"), "/projects/pr_empty/embeddables"); list == nil || len(list) != 0 {
		t.Errorf("a project without embeddables: %v", list)
	}
}

func TestWithoutLimitAllCome(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"MAX_LIMIT": "1000"})
	key := s.Keys.Key(project)
	const n = 12_345
	fill(t, s, project, n)
	for _, accept := range []string{"application/json", "application/x-ndjson"} {
		a := s.Do(t, servicetest.Request{Path: "/projects/pr_1/embeddables", Key: key, Headers: map[string]string{"Accept": accept}})
		if got := bytes.Count(a.Body, []byte(`"embeddable_id"`)); a.Status != 200 || a.Err != nil || got != n || a.Header.Get("Link") != "" {
			t.Errorf("%s: %d, %d of %d, Link %q, %v", accept, a.Status, got, n, a.Header.Get("Link"), a.Err)
		}
		if a.Header.Get("Content-Type") != accept {
			t.Errorf("Content-Type %q", a.Header.Get("Content-Type"))
		}
	}
	// Reading by pages returns the same list. A cursor without a limit returns the rest.
	all, _ := s.List(t, key, "/projects/pr_1/embeddables")
	if diff := cmp.Diff(all, s.Walk(t, key, "/projects/pr_1/embeddables?limit=1000", nil)); diff != "" {
		t.Error(diff)
	}
	_, a := s.List(t, key, "/projects/pr_1/embeddables?limit=345")
	rest, _ := s.List(t, key, "/projects/pr_1/embeddables?cursor="+a.Header.Get("X-Next-Cursor"))
	if diff := cmp.Diff(all[345:], rest); diff != "" {
		t.Error(diff)
	}
}

func TestGetEmbeddable(t *testing.T) {
	t.Parallel()
	s, project, key := demo(t)
	a := s.Get(t, key, "/projects/"+project+"/embeddables/emb_1")
	want := `{"embeddable_id":"emb_1","title":"Title of emb_1","group_id":"gr_1","project_id":"` + project + `","json_string_prod":"{\"flow\":\"emb_1\"}"}` + "\n"
	if a.Status != 200 || string(a.Body) != want {
		t.Errorf("%d %s, want %s", a.Status, a.Body, want)
	}
	for _, id := range []string{"a/b", "ünï", "100%", "a b", "?#&=", ".", "..", "versions", strings.Repeat("é", 128)} {
		s.MustIngest(t, "embeddables", newEmbeddable(project, id))
		s.MustIngest(t, "embeddable-versions", newVersion(project, id, 1))
		escaped := strings.ReplaceAll(url.PathEscape(id), ".", "%2E")
		for _, path := range []string{"", "/versions/1"} {
			a := s.Get(t, key, "/projects/"+project+"/embeddables/"+escaped+path)
			var got object
			if a.JSON(t, &got); a.Status != 200 || got["embeddable_id"] != id {
				t.Errorf("%q: %d %s", id, a.Status, a.Body)
			}
		}
		if list, _ := s.List(t, key, "/projects/"+project+"/embeddables/"+escaped+"/versions"); len(list) != 1 || list[0]["embeddable_id"] != id {
			t.Errorf("versions of %q: %v", id, list)
		}
	}
}

func TestListVersions(t *testing.T) {
	t.Parallel()
	s, project, key := demo(t)
	one, two, ten := listed(newVersion(project, "emb_2", 1)), listed(newVersion(project, "emb_2", 2)), listed(newVersion(project, "emb_2", 10))
	for query, want := range map[string][]object{
		"":                       {ten, two, one},
		"?direction=asc":         {one, two, ten},
		"?direction=DESC":        {ten, two, one},
		"?direction=ASC&limit=2": {one, two},
		"?limit=1":               {ten},
	} {
		list, _ := s.List(t, key, "/projects/"+project+"/embeddables/emb_2/versions"+query)
		if diff := cmp.Diff(want, list); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	a := s.Get(t, key, "/projects/"+project+"/embeddables/emb_2/versions?limit=1")
	const want = `[{"embeddable_id":"emb_2","version_number":10,"saved_at":"2022-01-01T00:00:10Z"}]` + "\n"
	if string(a.Body) != want {
		t.Errorf("%s, want %s", a.Body, want)
	}
	if list, _ := s.List(t, key, "/projects/"+project+"/embeddables/emb_1/versions"); list == nil || len(list) != 0 {
		t.Errorf("an embeddable without versions: %v", list)
	}
	var more []any
	for i := range 15 {
		more = append(more, newVersion(project, "emb_3", i))
	}
	s.MustIngest(t, "embeddable-versions", more...)
	if list, a := s.List(t, key, "/projects/"+project+"/embeddables/emb_3/versions"); len(list) != 10 || a.Header.Get("X-Next-Cursor") == "" {
		t.Errorf("without a limit: %d of 15", len(list))
	}
}

func TestGetVersion(t *testing.T) {
	t.Parallel()
	s, project, key := demo(t)
	const want = `{"embeddable_id":"emb_2","version_number":10,"saved_at":"2022-01-01T00:00:10Z","json_string":"{\"flow\":\"emb_2\",\"version\":10}"}` + "\n"
	if a := s.Get(t, key, "/projects/"+project+"/embeddables/emb_2/versions/10"); a.Status != 200 || string(a.Body) != want {
		t.Errorf("%d %s, want %s", a.Status, a.Body, want)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s := start(t, map[string]string{"MAX_LIMIT": "1000"})
	demonstrate(t, s, project)
	key := s.Keys.Key(project)
	narrow, other := s.Keys.Key(project, auth.EntriesRead), s.Keys.Key("pr_2")
	revoked, r := s.Keys.Minted(pgkeys.MintOptions{ProjectID: project})
	if _, err := s.Keys.Revoke(t.Context(), project, r.ID); err != nil {
		t.Fatal(err)
	}
	elsewhere, _ := auth.Mint()
	const (
		list     = "/projects/pr_1/embeddables"
		one      = "/projects/pr_1/embeddables/emb_2"
		versions = "/projects/pr_1/embeddables/emb_2/versions"
		version  = "/projects/pr_1/embeddables/emb_2/versions/1"
	)
	own := object{"projectId": "pr_1"}
	invalid := func(parameter string) object { return object{"projectId": "pr_1", "parameter": parameter} }
	missing := func(id string) object { return object{"projectId": "pr_1", "embeddableId": id} }
	noVersion := func(id string, number int) object {
		return object{"projectId": "pr_1", "embeddableId": id, "versionNumber": float64(number)}
	}
	s.CheckRefusals(t, []servicetest.Refusal{
		{Name: "no key", Path: list, Status: 401, Code: "unauthorized", Rest: own},
		{Name: "one, no key", Path: one, Status: 401, Code: "unauthorized", Rest: own},
		{Name: "versions, no key", Path: versions, Status: 401, Code: "unauthorized", Rest: own},
		{Name: "version, no key", Path: version, Status: 401, Code: "unauthorized", Rest: own},
		{Name: "malformed key", Path: list, Key: "nonsense", Status: 401, Code: "unauthorized", Rest: own},
		{Name: "unknown key", Path: list, Key: elsewhere.Reveal(), Status: 401, Code: "unauthorized", Rest: own},
		{Name: "another project's key", Path: list, Key: other, Status: 401, Code: "unauthorized", Rest: own},
		{Name: "revoked key", Path: one, Key: revoked, Status: 401, Code: "unauthorized", Rest: own},
		{Name: "ingest key", Path: list, Key: servicetest.IngestKey, Status: 401, Code: "unauthorized", Rest: own},
		{Name: "key before parameters", Path: list + "?limit=0", Status: 401, Code: "unauthorized", Rest: own},
		{Name: "scope", Path: list, Key: narrow, Status: 403, Code: "insufficient_scope", Rest: own},
		{Name: "one, scope", Path: one, Key: narrow, Status: 403, Code: "insufficient_scope", Rest: own},
		{Name: "versions, scope before parameters", Path: versions + "?limit=0", Key: narrow, Status: 403, Code: "insufficient_scope", Rest: own},
		{Name: "version, scope before path", Path: versions + "/x", Key: narrow, Status: 403, Code: "insufficient_scope", Rest: own},
		{Name: "method before key", Method: "POST", Path: list, Status: 405, Code: "method_not_allowed", Rest: object{}},
		{Name: "path before method", Method: "POST", Path: "/nope", Status: 404, Code: "route_not_found", Rest: object{}},
		{Name: "DELETE", Method: "DELETE", Path: one, Key: key, Status: 405, Code: "method_not_allowed", Rest: object{}},
		{Name: "PUT", Method: "PUT", Path: version, Key: key, Status: 405, Code: "method_not_allowed", Rest: object{}},
		{Name: "unknown path", Path: version + "/nope", Key: key, Status: 404, Code: "route_not_found", Rest: object{}},
		{Name: "trailing slash", Path: list + "/", Key: key, Status: 404, Code: "route_not_found", Rest: object{}},
		{Name: "empty number", Path: versions + "/", Key: key, Status: 404, Code: "route_not_found", Rest: object{}},
		{Name: "internal path", Path: "/internal/embeddables", Key: key, Status: 404, Code: "route_not_found", Rest: object{}},
		{Name: "no such embeddable", Path: "/projects/pr_1/embeddables/emb_9", Key: key, Status: 404, Code: "embeddable_does_not_exist", Rest: missing("emb_9")},
		{Name: "another project's embeddable", Path: "/projects/pr_1/embeddables/emb_other", Key: key, Status: 404, Code: "embeddable_does_not_exist", Rest: missing("emb_other")},
		{Name: "versions of no embeddable", Path: "/projects/pr_1/embeddables/emb_9/versions", Key: key, Status: 404, Code: "embeddable_does_not_exist", Rest: missing("emb_9")},
		{Name: "versions of another project's", Path: "/projects/pr_1/embeddables/emb_other/versions", Key: key, Status: 404, Code: "embeddable_does_not_exist", Rest: missing("emb_other")},
		{Name: "no such version", Path: versions + "/3", Key: key, Status: 404, Code: "embeddable_version_does_not_exist", Rest: noVersion("emb_2", 3)},
		{Name: "negative version", Path: versions + "/-1", Key: key, Status: 404, Code: "embeddable_version_does_not_exist", Rest: noVersion("emb_2", -1)},
		{Name: "version of no embeddable", Path: "/projects/pr_1/embeddables/emb_9/versions/1", Key: key, Status: 404, Code: "embeddable_version_does_not_exist", Rest: noVersion("emb_9", 1)},
		{Name: "version of another project's", Path: "/projects/pr_1/embeddables/emb_other/versions/7", Key: key, Status: 404, Code: "embeddable_version_does_not_exist", Rest: noVersion("emb_other", 7)},
		{Name: "version of words", Path: versions + "/latest", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("versionNumber")},
		{Name: "version with a fraction", Path: versions + "/1.0", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("versionNumber")},
		{Name: "version beyond 64 bits", Path: versions + "/9223372036854775808", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("versionNumber")},
		{Name: "broken UTF-8 in version", Path: versions + "/%ff", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("versionNumber")},
		{Name: "parameters before record", Path: "/projects/pr_1/embeddables/emb_9/versions?limit=0", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("limit")},
		{Name: "limit 0", Path: list + "?limit=0", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("limit")},
		{Name: "empty limit", Path: list + "?limit=", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("limit")},
		{Name: "limit over MAX_LIMIT", Path: list + "?limit=1001", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("limit")},
		{Name: "limit of versions", Path: versions + "?limit=1001", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("limit")},
		{Name: "direction of embeddables", Path: list + "?direction=ASC", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("direction")},
		{Name: "direction", Path: versions + "?direction=up", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("direction")},
		{Name: "cursor", Path: list + "?cursor=abc", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("cursor")},
		{Name: "empty cursor", Path: versions + "?cursor=", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("cursor")},
		{Name: "unknown parameter", Path: list + "?sort=title", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("sort")},
		{Name: "filter of versions", Path: versions + "?updated_after=2022-01-01", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("updated_after")},
		{Name: "parameter of one", Path: one + "?limit=1", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("limit")},
		{Name: "parameter of a version", Path: version + "?limit=1", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("limit")},
		{Name: "twice", Path: list + "?limit=1&limit=1", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("limit")},
		{Name: "long embeddable id", Path: list + "/" + strings.Repeat("x", 257), Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("embeddableId")},
		{Name: "NUL in embeddable id", Path: list + "/a%00b/versions", Key: key, Status: 400, Code: "invalid_parameter", Rest: invalid("embeddableId")},
		{Name: "NUL in project id", Path: "/projects/a%00b/embeddables", Key: key, Status: 401, Code: "unauthorized"},
	})
}

func TestRepresentation(t *testing.T) {
	t.Parallel()
	s, project, key := demo(t)
	many := project + "_many"
	fill(t, s, many, 400)
	s.MustIngest(t, "embeddables", servicetest.With(newEmbeddable(project, "emb_long"), "json_string_prod", long(5<<20)))
	s.CheckRepresentation(t, key,
		"/projects/"+project+"/embeddables", "/projects/"+project+"/embeddables?limit=1", "/projects/"+project+"/embeddables/emb_1",
		"/projects/"+project+"/embeddables/emb_2/versions", "/projects/"+project+"/embeddables/emb_2/versions/1", "/projects/"+project+"/embeddables/emb_long")
	s.CheckRepresentation(t, s.Keys.Key(many), "/projects/"+many+"/embeddables")
	s.CheckPaging(t, key, "/projects/"+project+"/embeddables?limit=1", "/projects/"+project+"/embeddables/emb_2/versions?limit=1",
		"/projects/"+project+"/embeddables/emb_2/versions?limit=2&direction=asc")

	// The tag of a long document depends on its content.
	tag := func() string { return s.Get(t, key, "/projects/"+project+"/embeddables/emb_long").Header.Get("ETag") }
	before := tag()
	s.MustIngest(t, "embeddables", servicetest.With(newEmbeddable(project, "emb_long"), "json_string_prod", long(5<<20-1)))
	if tag() == before {
		t.Error("the tag stays when the content changes")
	}
}
