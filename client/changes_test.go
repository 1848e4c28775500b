package client

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"
)

// feedOf serves a change feed with one change on each page. The last page is empty.
func feedOf(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		to := min(from+1, len(lines))
		w.Header().Set("X-Last-Seq", "9007199254740993")
		w.Header().Set("X-Next-Cursor", strconv.Itoa(to))
		if to < len(lines) {
			w.Header().Set("Link", `</next>; rel="next"`)
		}
		if from < to {
			_, _ = io.WriteString(w, lines[from]+"\n")
		}
	}
}

func TestChangesAreTyped(t *testing.T) {
	c, _ := serve(t, feedOf(
		`{"change":"event","seq":1,"event":{"entry_id":"a","timestamp":"2024-01-01T00:00:00Z","page_index":0,"event_id":null,"url":"u","event_key":"k"}}`,
		`{"change":"entry","seq":9007199254740992,"entry":{"entry_id":"a","entry_data":"{}"}}`,
		`{"change":"entry_removed","seq":9007199254740993,"entry_id":"a","removed_at":"2024-01-02T00:00:00.25Z","reason":"erased"}`,
	))
	var got []Change
	var pages []ChangePage
	for page, err := range c.Changes(t.Context(), "p", ChangeQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, page.Changes...)
		pages = append(pages, page)
	}
	want := []Change{
		{Type: EventAdded, Seq: 1, Event: &ChangedEvent{
			Event: Event{EntryID: "a", Timestamp: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), PageIndex: new(int64(0))}, URL: new("u"), EventKey: "k",
		}},
		{Type: EntryChanged, Seq: 9007199254740992, Entry: &Entry{EntryID: "a", Data: "{}"}},
		{Type: EntryRemoved, Seq: 9007199254740993, Removal: &Removal{"a", time.Date(2024, 1, 2, 0, 0, 0, 25e7, time.UTC), Erased}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(pages) != 3 || pages[1].Current || !pages[2].Current || pages[2].NextCursor != "3" || pages[2].LastSeq != 9007199254740993 {
		t.Errorf("pages %+v: want the third to be current", pages)
	}
	if b, err := json.Marshal(got[2]); err != nil || string(b) != `{"change":"entry_removed","seq":9007199254740993,"entry_id":"a","removed_at":"2024-01-02T00:00:00.25Z","reason":"erased"}` {
		t.Errorf("a removal becomes %s, %v", b, err)
	}
}

// TestChangesWaitAsTold checks that after an empty page that is not the last, the client waits for Retry-After.
func TestChangesWaitAsTold(t *testing.T) {
	asked := 0
	c, waits := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked < 3 {
			w.Header().Set("Link", `</next>; rel="next"`)
			w.Header().Set("Retry-After", "1")
		}
		w.Header().Set("X-Next-Cursor", "c")
	})
	for page, err := range c.Changes(t.Context(), "p", ChangeQuery{}) {
		if err != nil || page.Current != (asked == 3) {
			t.Fatalf("%+v, %v after %d requests", page, err, asked)
		}
	}
	if asked != 3 || !slices.Equal(*waits, []time.Duration{time.Second, time.Second}) {
		t.Errorf("%d requests with waits %v, want three with a second between", asked, *waits)
	}
}

// TestFollow checks that a follower continues after a page that is current, and lets the server wait. An iterator can be
// used again from the beginning.
func TestFollow(t *testing.T) {
	var waits, afters, cursors []string
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		waits = append(waits, r.URL.Query().Get("wait"))
		cursors = append(cursors, r.URL.Query().Get("cursor"))
		afters = append(afters, r.URL.Query().Get("after"))
		feedOf(`{"change":"entry_removed","seq":1,"entry_id":"a","removed_at":"2024-01-02T00:00:00Z","reason":"erased"}`)(w, r)
	})
	feed := c.Follow(t.Context(), "p", ChangeQuery{After: "now"})
	for range 2 {
		pages := 0
		for page, err := range feed {
			if err != nil || !page.Current {
				t.Fatalf("%+v, %v", page, err)
			}
			if pages++; pages == 3 {
				break
			}
		}
	}
	if want := []string{"", "1", "1", "", "1", "1"}; !slices.Equal(cursors, want) {
		t.Errorf("cursors %q, want %q", cursors, want)
	}
	if want := []string{"now", "", "", "now", "", ""}; !slices.Equal(afters, want) {
		t.Errorf("after %q, want %q", afters, want)
	}
	if want := slices.Repeat([]string{"30"}, 6); !slices.Equal(waits, want) {
		t.Errorf("waits %q, want %q", waits, want)
	}
	for _, err := range c.Changes(t.Context(), "p", ChangeQuery{Wait: time.Minute}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if last := waits[len(waits)-1]; last != "" {
		t.Errorf("Changes waits %s s", last)
	}
}

// TestChangeWithoutItsRecord checks that no reader gets a change of a known type with a nil record.
func TestChangeWithoutItsRecord(t *testing.T) {
	for _, in := range []string{`{"change":"entry","seq":1}`, `{"change":"event","seq":1,"event":null}`, `{"change":"entry_removed","seq":1}`} {
		c, _ := serve(t, feedOf(in))
		if page, err := c.ChangesPage(t.Context(), "p", ChangeQuery{}); err == nil {
			t.Errorf("%s became %+v", in, page.Changes)
		}
	}
	c, _ := serve(t, feedOf(`{"change":"of a later version","seq":1,"entry_id":"a","reason":"erased","entry":{},"event":{}}`))
	page, err := c.ChangesPage(t.Context(), "p", ChangeQuery{})
	if want := []Change{{Type: "of a later version", Seq: 1}}; err != nil || !reflect.DeepEqual(page.Changes, want) {
		t.Errorf("%+v, %v; want %+v", page.Changes, err, want)
	}
}
