package app

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

func TestTenancy(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	store := func(project, marker string) {
		for e := range 20 {
			id := fmt.Sprintf("en_%d", e)
			entry, view := newEntry(project, id, at(e)), pageView(project, id, e, at(e))
			entry["entry_data"], entry["group_id"] = fmt.Sprintf(`{"v":"%s%d"}`, marker, e), marker
			view["contact_id"], view["page_key"], view["url"] = marker, marker, "https://x/"+marker
			s.MustIngest(t, "entries", entry)
			s.MustIngest(t, "events", view)
		}
	}
	ask := func(random *rand.Rand, cursor string) string {
		pick := func(of ...string) string { return servicetest.Pick(random, of...) }
		one := fmt.Sprintf("/entries/en_%d", random.IntN(40)) // half of them do not exist
		path := pick(one, one+"/events", "/entries", "/entries-page-views")
		parameters := []string{
			"limit=" + pick("1", "5", "100", "0"), "direction=" + pick("ASC", "desc"), "cursor=" + cursor, "sort=" + pick("created_at", "updated_at"),
			"updated_after=" + at(random.IntN(20)).Format("2006-01-02T15:04:05"), "include_urls=" + pick("true", "false"),
			"contact_id=" + pick("co_1", "co_2"), "embeddable_id=" + pick("emb_1", "emb_2"),
		}
		switch path {
		case one:
			parameters = nil
		case one + "/events":
			parameters = parameters[:3]
		}
		return path + "?" + strings.Join(slices.DeleteFunc(parameters, func(string) bool { return random.IntN(4) > 0 }), "&")
	}
	s.CheckTenancy(t, store, ask, s.Keys.Key("tenant_0", auth.EmbeddablesRead))
}

// TestCursorsOfOtherLists sends every list's cursor with every other list. The answer is 400, never other rows.
func TestCursorsOfOtherLists(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	second := project + "_other"
	other := s.Keys.Key(second)
	for _, p := range []string{project, second} {
		for e := range 4 {
			s.MustIngest(t, "entries", newEntry(p, fmt.Sprintf("en_%d", e), at(e)))
		}
		for e := range 6 {
			s.MustIngest(t, "events", pageView(p, fmt.Sprintf("en_%d", e%2), e, at(e)))
		}
	}
	lists := []string{
		"/projects/" + project + "/entries?limit=1",
		"/projects/" + project + "/entries?limit=1&direction=ASC",
		"/projects/" + project + "/entries?limit=1&sort=created_at",
		"/projects/" + project + "/entries?limit=1&updated_after=2021-01-01",
		"/projects/" + project + "/entries?limit=1&updated_before=2031-01-01",
		"/projects/" + project + "/entries?limit=1&contact_id=co_1",
		"/projects/" + project + "/entries?limit=1&embeddable_id=emb_1",
		"/projects/" + project + "/entries?limit=1&group_id=gr_1&contact_id=co_1",
		"/projects/" + project + "/entries-page-views?limit=1",
		"/projects/" + project + "/entries-page-views?limit=1&contact_id=co_1",
		"/projects/" + project + "/entries-page-views?limit=1&direction=ASC",
		"/projects/" + project + "/entries/en_0/events?limit=1",
		"/projects/" + project + "/entries/en_1/events?limit=1",
		"/projects/" + project + "/entries/en_1/events?limit=1&direction=ASC",
		"/projects/" + second + "/entries?limit=1",
		"/projects/" + second + "/entries-page-views?limit=1",
	}
	keyOf := func(path string) string {
		if strings.HasPrefix(path, "/projects/"+second) {
			return other
		}
		return key
	}
	s.CheckCursors(t, keyOf, lists...)
}
