package app

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFilterByHostileIDs filters by ids that are similar, or that have a meaning in SQL or in a URL. Each filter finds
// exactly its own entries, page by page.
func TestFilterByHostileIDs(t *testing.T) {
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
			all = append(all, e, with(e, "project_id", "pr_2"))
		}
	}
	s.MustIngest(t, "entries", all...)
	for i, id := range names {
		want := []string{fmt.Sprintf("en_%d_1", i), fmt.Sprintf("en_%d_0", i)}
		for _, filter := range []string{"embeddable_id", "contact_id", "group_id"} {
			for _, list := range []string{"entries", "entries-page-views"} {
				path := "/projects/" + project + "/" + list + "?limit=1&" + filter + "=" + url.QueryEscape(id)
				found := walk(t, s, key, path, nil)
				if diff := cmp.Diff(want, ids(found, "entry_id")); diff != "" {
					t.Errorf("%s: %s", path, diff)
				}
				if slices.ContainsFunc(found, func(o object) bool { return o["project_id"] != project }) {
					t.Errorf("%s: entries of another project", path)
				}
			}
		}
	}
}

// TestCursorsFromBeforeTheFilters continues lists without filters with cursors that an earlier version returned.
func TestCursorsFromBeforeTheFilters(t *testing.T) {
	s := start(t, nil)
	key := s.Keys.Key(project)
	for i, id := range []string{"en_1", "en_2", "en_3"} {
		s.MustIngest(t, "entries", newEntry(project, id, at(1+i)))
	}
	for _, tt := range []struct{ path, cursor, want string }{
		{"entries?limit=1", "AQAF1Hn4JybAZW5fM-3c4lvGUApBgpVna-PFuKA", "en_2"},
		{"entries?limit=1&direction=ASC&sort=created_at", "AQAF1Hn3-WAAZW5fMabXfkoy1DbQz-_XIFFtlWU", "en_2"},
		{"entries?limit=1&updated_after=2021-01-01&updated_before=2031-01-01", "AQAF1Hn4JybAZW5fM_57kJlaHUVghwVtaEhyO5g", "en_2"},
		{"entries-page-views?limit=1", "AQAF1Hn4JybAZW5fM8q0a-BreOvuqCZN8KEc2tQ", "en_2"},
	} {
		path := "/projects/" + project + "/" + tt.path
		_, a := getList(t, s, key, path)
		if got := a.Header.Get("X-Next-Cursor"); got != tt.cursor {
			t.Errorf("%s gives the cursor %s, want %s", path, got, tt.cursor)
			continue
		}
		if list, _ := getList(t, s, key, path+"&cursor="+tt.cursor); len(list) != 1 || list[0]["entry_id"] != tt.want {
			t.Errorf("%s after that cursor: %v, want %s", path, list, tt.want)
		}
	}
}
