package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	"github.com/lectern-dev/lectern/services/entries/internal/store"
)

// follower keeps a copy of a project with the change feed, as docs/reference/api.md describes.
type follower struct {
	key, project string

	cursor  string
	last    int64
	entries map[string]string // the updated_at of each entry
	events  map[string]bool   // by event_key
}

func newFollower(key, project string) *follower {
	return &follower{key: key, project: project, entries: map[string]string{}, events: map[string]bool{}}
}

// step reads one page and applies all of it or nothing. It reports whether the copy was current. If the page cannot be
// read, it returns an error, and the next step reads the page again.
func (f *follower) step(t testing.TB, base string, limit, wait int) (current bool, _ error) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	url := fmt.Sprintf("%s/projects/%s/entries-changes?limit=%d&wait=%d", base, f.project, limit, wait)
	if f.cursor != "" {
		url += "&cursor=" + f.cursor
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("X-Api-Key", f.key)
	req.Header.Set("Accept", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return false, err
	}
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("status %d: %s", resp.StatusCode, body)
	}
	for line := range bytes.Lines(body) {
		f.apply(t, line)
	}
	f.cursor = resp.Header.Get("X-Next-Cursor")
	return resp.Header.Get("Link") == "", nil
}

func (f *follower) apply(t testing.TB, line []byte) {
	var c struct {
		Change string
		Seq    int64
		Entry  struct {
			EntryID   string    `json:"entry_id"`
			UpdatedAt time.Time `json:"updated_at"`
		}
		Event struct {
			Key string `json:"event_key"`
		}
	}
	if err := json.Unmarshal(line, &c); err != nil {
		t.Errorf("%v: %s", err, line)
	}
	if c.Seq <= f.last {
		t.Errorf("number %d after %d", c.Seq, f.last)
	}
	f.last = c.Seq
	switch c.Change {
	case "entry":
		f.entries[c.Entry.EntryID] = c.Entry.UpdatedAt.UTC().Format(time.RFC3339Nano)
	case "event":
		if f.events[c.Event.Key] {
			t.Errorf("the event %s came twice", c.Event.Key)
		}
		f.events[c.Event.Key] = true
	default:
		t.Errorf("an unexpected change: %s", line)
	}
}

// finish reads until the copy is current. No record may change in the meantime.
func (f *follower) finish(t testing.TB, base string) {
	t.Helper()
	eventually.True(t, "the copy is current", func() bool {
		current, err := f.step(t, base, 1000, 0)
		return current && err == nil
	})
}

// source reads the expected copy of a project from the tables.
func source(t testing.TB, ownerURL, project string) *follower {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), ownerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	f := newFollower("", project)
	each := func(sql string, keep func(id string, at *time.Time)) {
		rows, err := conn.Query(t.Context(), sql, project)
		if err != nil {
			t.Fatal(err)
		}
		var id string
		var at *time.Time
		if _, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error { keep(id, at); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	each(`SELECT entry_id, updated_at FROM entries WHERE project_id = $1`, func(id string, at *time.Time) {
		f.entries[id] = at.UTC().Format(time.RFC3339Nano)
	})
	each(`SELECT encode(event_key, 'hex'), NULL::timestamptz FROM events WHERE project_id = $1`, func(key string, _ *time.Time) {
		f.events[key] = true
	})
	return f
}

// equals fails t if the copy differs from its source.
func (f *follower) equals(t testing.TB, source *follower) {
	t.Helper()
	if !maps.Equal(f.entries, source.entries) || !maps.Equal(f.events, source.events) { // faster than an empty Diff
		diff := gocmp.Diff([]any{source.entries, source.events}, []any{f.entries, f.events})
		t.Errorf("the copy differs (-source +copy):\n%.2000s", diff)
	}
}

// TestLongFollowersOfAKilledService runs 16 senders of one project and 4 followers that copy it, and kills the service
// three times. No change is lost, out of order or duplicated.
func TestLongFollowersOfAKilledService(t *testing.T) {
	needs.Long(t)
	const more = 150 // batches and pages between two faults
	b := servicetest.NewBacking(t, store.Schema())
	binary := servicetest.Self(t)
	key := b.Keys.Key(project)
	var at atomic.Pointer[servicetest.Process]
	at.Store(servicetest.StartProcess(t, b, binary, nil))

	ended := make(chan struct{})
	var acknowledged atomic.Int64
	senders := make(chan struct{})
	for sender := range 16 {
		go func() {
			defer func() { senders <- struct{}{} }()
			for n := 0; ; n++ {
				resource, body := batch(sender, n)
				if err := eventually.Try(func() error { return send(at.Load().InternalURL, resource, body) }); err != nil {
					t.Error(err)
					return
				}
				acknowledged.Add(1)
				select {
				case <-ended:
					return
				default:
				}
			}
		}()
	}
	var followers []*follower
	var pages atomic.Int64
	done := make(chan struct{})
	for range 4 {
		f := newFollower(key, project)
		followers = append(followers, f)
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				if err := eventually.Try(func() error {
					_, err := f.step(t, at.Load().URL, 1+rand.IntN(300), rand.IntN(3))
					return err
				}); err != nil {
					t.Error(err)
					return
				}
				pages.Add(1)
				select {
				case <-ended:
					return
				default:
				}
			}
		}()
	}
	// The senders and the followers get on between two faults.
	progress := func() {
		t.Helper()
		sent, read := acknowledged.Load(), pages.Load()
		eventually.True(t, "changes are sent and read", func() bool { return acknowledged.Load() > sent+more && pages.Load() > read+more })
	}
	for range 3 {
		progress()
		at.Load().Kill()
		at.Store(servicetest.StartProcess(t, b, binary, nil))
	}
	progress()
	close(ended)
	for range 16 {
		<-senders
	}
	for range followers {
		<-done
	}
	want := source(t, b.DB.OwnerURL, project)
	t.Logf("%d batches, %d entries, %d events; %d pages read", acknowledged.Load(), len(want.entries), len(want.events), pages.Load())
	for _, f := range append(followers, newFollower(key, project)) {
		f.finish(t, at.Load().URL)
		f.equals(t, want)
	}
}

// batch returns the nth batch of a sender: entries that change with each round, or new events.
func batch(sender, n int) (resource, body string) {
	var lines strings.Builder
	w := json.NewEncoder(&lines)
	resource = "entries"
	if n%2 == 1 {
		resource = "events"
	}
	for i := range 1 + n%20 {
		id := fmt.Sprintf("en_%d_%d", sender, (n+i)%50)
		var record object
		if resource == "entries" {
			record = newEntry(project, id, at(n))
		} else {
			record = servicetest.With(pageView(project, id, 1, at(n)), "event_id", fmt.Sprintf("ev_%d_%d_%d", sender, n, i))
		}
		_ = w.Encode(record) // the fields are strings, so it always encodes
	}
	return resource, lines.String()
}

// send sends a batch, and returns an error unless it was acknowledged.
func send(base, resource, body string) error {
	req, err := http.NewRequest(http.MethodPost, base+"/internal/"+resource, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("X-Api-Key", servicetest.IngestKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", resp.StatusCode)
	}
	return err
}
