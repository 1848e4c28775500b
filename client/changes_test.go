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
