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
