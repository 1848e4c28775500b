package copiestest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/client/clienttest"
)

// TestFakeFeed checks that the feed of clienttest answers as that of the service does. The numbers of changes are compared
// by their order.
func TestFakeFeed(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	fake := clienttest.New(clienttest.Data{})
	defer fake.Close()
	// A client of the fake sees each change that the service stores, one at a time.
	puts := []string{"en_1", "en_2", "en_3", "en_1"}
	for i, id := range puts {
		at := time.Date(2024, 1, 1, 0, 0, i, 0, time.UTC)
		e := client.Entry{EntryID: id, ProjectID: project, GroupID: "gr_1", EmbeddableID: "emb_1", ContactID: "co_1", CreatedAt: at, UpdatedAt: at, Data: fmt.Sprintf(`{"n":%d}`, i)}
		s.MustIngest(t, "entries", e)
		fake.AddChanges(client.Change{Type: client.EntryChanged, Entry: &e})
		v := client.Event{
			EntryID: id, ProjectID: project, GroupID: "gr_1", EmbeddableID: "emb_1", ContactID: "co_1", Timestamp: at, EventType: "flowpage.viewed",
			PageID: new("pg_1"), PageKey: new("page-1"), PageIndex: new(int64(0)), TotalPages: new(int64(1)), ViewType: new("flowpage"),
		}
		s.MustIngest(t, "events", v)
		fake.AddChanges(client.Change{Type: client.EventAdded, Event: &client.ChangedEvent{Event: v, EventKey: fmt.Sprint(i)}})
	}
	for _, id := range []string{"en_2", "never came"} {
		s.remove(t, "erased", id)
		fake.AddChanges(client.Change{Type: client.EntryRemoved, Removal: &client.Removal{EntryID: id, Reason: client.Erased}})
	}
	fakeClient, err := client.New(fake.URL)
	if err != nil {
		t.Fatal(err)
	}
	// transcript returns all answers to the same requests, with the places of numbers in the feed in place of the numbers.
	transcript := func(c *client.Client) (lines []string) {
		seqs := map[int64]string{0: "0"}
		page := func(name string, q client.ChangeQuery) client.ChangePage {
			p, err := c.ChangesPage(t.Context(), project, q)
			line := fmt.Sprintf("%s: current %v, last %s, %s", name, p.Current, seqs[p.LastSeq], client.Code(err))
			for _, one := range p.Changes {
				one := one
				if seqs[one.Seq] == "" {
					seqs[one.Seq] = fmt.Sprint(len(seqs))
				}
				if one.Event != nil {
					e := *one.Event
					e.EventKey, e.EventID = "", nil // the server makes the keys
					one.Event = &e
				}
				if one.Removal != nil {
					r := *one.Removal
					r.RemovedAt = time.Time{}
					one.Removal = &r
				}
				number := seqs[one.Seq]
				one.Seq = 0
				text, _ := json.Marshal(one)
				line += "\n\t" + number + " " + string(text)
			}
			lines = append(lines, line)
			return p
		}
		page("first", client.ChangeQuery{PageSize: 1000})
		all := page("all", client.ChangeQuery{PageSize: 1000})
		cursor := ""
		for n := 0; n < 20; n++ {
			p := page("page", client.ChangeQuery{PageSize: 2, Cursor: cursor})
			if cursor = p.NextCursor; p.Current {
				break
			}
		}
		page("after the last", client.ChangeQuery{Cursor: cursor})
		for _, types := range [][]client.ChangeType{{client.EntryChanged}, {client.EventAdded, client.EntryRemoved}} {
			p := page(fmt.Sprint(types), client.ChangeQuery{Types: types, PageSize: 1})
			page("rest", client.ChangeQuery{Types: types, Cursor: p.NextCursor})
		}
		for i, after := range []string{"now", "0", fmt.Sprint(all.Changes[1].Seq), fmt.Sprint(all.Changes[2].Seq - 1), "x", "-1"} {
			page(fmt.Sprint("after ", i), client.ChangeQuery{After: after})
		}
		for _, id := range []string{"en_1", "en_2"} {
			_, err := c.Entry(t.Context(), project, id)
			lines = append(lines, id+" "+client.Code(err))
		}
		return lines
	}
	want, got := transcript(s.client), transcript(fakeClient)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-service +fake: %s", diff)
	}
	if text := want[1]; !strings.Contains(text, "entry_removed") {
		t.Errorf("the feed of the service is %s", text)
	}
}
