package app

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// TestFilterByHostileIDs filters by ids that are similar, or that have a meaning in SQL or in a URL. Each filter finds
// exactly its own entries, page by page.
func TestFilterByHostileIDs(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	key := s.Keys.Key(project)
	names := []string{
		"a", "A", "a ", " a", "%", "_", "*", "%00", "null", "NULL", "0", "''", `"`, `\`, "$1", "a&b=c", "a+b", "a b", "a,b", "a/b", "?", "#", ";",
		"' OR '1'='1", "'; DROP TABLE entries; --", "é", "e\u0301", "\u202e", "\U0001F600", "\t\n", "\x01", strings.Repeat("x", 256), strings.Repeat("x", 255),
	}
	var all []any
	for i, id := range names {
		for j := range 2 {
			e := newEntry(project, fmt.Sprintf("en_%d_%d", i, j), at(j))
			e["embeddable_id"], e["contact_id"], e["group_id"] = id, id, id
			all = append(all, e, servicetest.With(e, "project_id", "pr_2"))
		}
	}
	s.MustIngest(t, "entries", all...)
	for i, id := range names {
		want := []string{fmt.Sprintf("en_%d_1", i), fmt.Sprintf("en_%d_0", i)}
		for _, filter := range []string{"embeddable_id", "contact_id", "group_id"} {
			for _, list := range []string{"entries", "entries-page-views"} {
				path := "/projects/" + project + "/" + list + "?limit=1&" + filter + "=" + url.QueryEscape(id)
				found := s.Walk(t, key, path, nil)
				if diff := cmp.Diff(want, servicetest.Column(found, "entry_id")); diff != "" {
					t.Errorf("%s: %s", path, diff)
				}
				if slices.ContainsFunc(found, func(o object) bool { return o["project_id"] != project }) {
					t.Errorf("%s: entries of another project", path)
				}
			}
		}
	}
}

// TestFilterByCompletion checks that completed selects by page views of the last page, together with other filters, and as
// the insights count.
func TestFilterByCompletion(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	key := s.Keys.Key(project)
	for i, id := range []string{"none", "started", "done", "done_first", "open", "other", "done_late"} {
		s.MustIngest(t, "entries", servicetest.With(newEntry(project, id, at(i)), "contact_id", "co_"+id[:2]))
	}
	s.MustIngest(t, "entries", newEntry("pr_2", "other", at(1)))
	s.MustIngest(t, "events",
		pageView(project, "started", 8, at(1)),
		pageView(project, "done", 9, at(1)), pageView(project, "done", 0, at(2)),
		servicetest.With(pageView(project, "done_first", 1, at(1)), "total_pages", 2), pageView(project, "done_first", 3, at(2)),
		servicetest.With(pageView(project, "open", 9, at(1)), "total_pages", nil),
		pageView("pr_2", "other", 9, at(1)))
	lists := func(t *testing.T, query string, want ...string) {
		t.Helper()
		for _, list := range []string{"entries", "entries-page-views"} {
			path := "/projects/" + project + "/" + list + "?limit=1&" + query
			if diff := cmp.Diff(want, servicetest.Column(s.Walk(t, key, path, nil), "entry_id")); diff != "" {
				t.Errorf("%s: %s", path, diff)
			}
		}
	}
	lists(t, "completed=true", "done_first", "done")
	lists(t, "completed=false", "done_late", "other", "open", "started", "none")
	lists(t, "completed=false&direction=asc&updated_after=2022-01-01T00:00:04Z", "other", "done_late")
	lists(t, "completed=false&contact_id=co_do", "done_late")
	s.CheckRepresentation(t, key, "/projects/"+project+"/entries?completed=true", "/projects/"+project+"/entries-page-views?completed=false")

	// A page view changes what the list has, though not the entry.
	path := "/projects/" + project + "/entries?sort=created_at&completed=true"
	before := s.Get(t, key, path).Header.Get("ETag")
	s.MustIngest(t, "events", pageView(project, "done_late", 9, at(3)))
	lists(t, "completed=true", "done_late", "done_first", "done")
	if list, a := s.List(t, key, path); len(list) != 3 || a.Header.Get("ETag") == before {
		t.Errorf("%d entries, with the tag %s as before", len(list), before)
	}
	counts, _ := s.List(t, key, "/projects/"+project+"/entries-counts?interval=all")
	if len(counts) != 1 || fmt.Sprint(counts[0]["completed"]) != "3" {
		t.Errorf("the insights count %v", counts)
	}
}
