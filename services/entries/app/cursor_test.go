package app

import "testing"

// TestCursorsArePinned checks that a list gives out the cursor that the versions before it gave out for the same request,
// and accepts that. So a walk goes on while old and new processes answer its requests, and a new filter changes no
// cursor of a request without it.
func TestCursorsArePinned(t *testing.T) {
	t.Parallel()
	s := start(t, nil) // a cursor of events has their numbers, and those of the first ones are pinned
	key := s.Keys.Key(project)
	for n, id := range []string{"en_1", "en_2"} {
		s.MustIngest(t, "entries", newEntry(project, id, at(9)))
		s.MustIngest(t, "events", pageView(project, "en_1", n, at(n)))
	}
	for path, want := range map[string]string{
		"entries?":                    "AQAF1Hn4grRAZW5fMl_z9YiX6F-hEsn-Zf-9UkQ",
		"entries?direction=asc":       "AQAF1Hn4grRAZW5fMX1VU5knOIQGQt3mD-pOZPg",
		"entries?sort=created_at":     "AQAF1Hn3-WAAZW5fMtXVsgicq8GTX3nFjydhIgM",
		"entries?contact_id=co_1":     "AQAF1Hn4grRAZW5fMshZwBDUQNjNDi7LNvFFS5k",
		"entries?embeddable_id=emb_1": "AQAF1Hn4grRAZW5fMgG8fOZZxVpA1pBy9NJ76YU",
		"entries?group_id=gr_1":       "AQAF1Hn4grRAZW5fMiKmlzW80DZBXyxA3G-repY",
		"entries?created_after=2021-12-31T01:00:00%2B01:00&updated_before=2022-02-01&contact_id=co_1":      "AQAF1Hn4grRAZW5fMiBvfepIXACHJuUJc3LbTXM",
		"entries?contact_id=co_1&updated_before=2022-02-01T00:00:00Z&created_after=2021-12-31T00:00:00.0Z": "AQAF1Hn4grRAZW5fMiBvfepIXACHJuUJc3LbTXM",
		"entries?completed=false": "AQAF1Hn4grRAZW5fMlxqHsn6hj4agh38Bqp-b0s",
		"entries-page-views?":     "AQAF1Hn4grRAZW5fMm_E-FSA-dFLbiIs8JekO68",
		"entries-page-views?include_urls=true&updated_after=2021-01-01&group_id=gr_1": "AQAF1Hn4grRAZW5fMr4n4v7VOHp4b2WlwCeOUdQ",
		"entries/en_1/events?": "AQAF1Hn4CKJAMgRJAMXGOTFkHsv40ROMcqc",
	} {
		path := "/projects/" + project + "/" + path + "&limit=1"
		if got := s.Get(t, key, path).Header.Get("X-Next-Cursor"); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		if a := s.Get(t, key, path+"&cursor="+want); a.Status != 200 {
			t.Errorf("%s: the answer to its cursor is %d", path, a.Status)
		}
	}
}
