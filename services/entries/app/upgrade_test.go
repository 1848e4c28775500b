package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// TestUpgrades checks that databases of all released versions upgrade in place.
func TestUpgrades(t *testing.T) {
	const project, path = "pr/ö", "/projects/pr%2F%C3%B6"
	start := func(t testing.TB, b *servicetest.Backing) *servicetest.Service { return startOn(t, b, nil) }
	servicetest.CheckUpgrades(t, store.Schema(), start, project, func(s *servicetest.Service) {
		for i, data := range []string{
			`{}`, `[]`, `{"a":"\u0000"}`, `{"a":1e400,"a":[1,{"b":null}]}`, `{"text":"` + strings.Repeat("ä€𝄞\\n", 200) + `"}`, ` {"n" : 1.0} `, `""`,
		} {
			id := fmt.Sprintf("en_%d ' %%\\ %s", i, strings.Repeat("ü", i))
			entry, view := newEntry(project, id, at(i)), pageView(project, id, i, at(i))
			entry["entry_data"] = data
			view["url"], view["custom_event_props"] = "https://example.com/?a=%00&b=ö", `{"p": "\u0000"}`
			s.MustIngest(t, "entries", entry)
			s.MustIngest(t, "events", view)
		}
		administer(t, s, "DELETE", "/internal"+path+"/entries/en_0%20%27%20%25%5C%20", "")
		s.MustIngest(t, "entries", newEntry("pr_2", "en_1", at(1)))
	},
		path+"/entries", path+"/entries?sort=created_at&direction=desc&limit=3", path+"/entries-page-views?include_urls=true", path+"/entries-changes?limit=100",
		path+"/entries-counts?interval=day&by=version", path+"/entries-overview", path+"/entries-funnel?embeddable_id=emb_1", path+"/entries-answers?embeddable_id=emb_1")
}
