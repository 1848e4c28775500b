package store

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/lectern-dev/lectern/shared/postgres/insert"
	"github.com/lectern-dev/lectern/shared/postgres/lists"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"

	"github.com/lectern-dev/lectern/services/entries/internal/change"
	"github.com/lectern-dev/lectern/services/entries/internal/entry"
)

// feedCopy is a reader's copy of a project: entries and events, as the API returns them.
type feedCopy struct {
	types   change.Types
	cursor  int64
	entries map[string]string            // by entry id
	events  map[string]map[string]string // by entry id, then event key
}

func newCopy(types change.Types) *feedCopy {
	return &feedCopy{types: types, entries: map[string]string{}, events: map[string]map[string]string{}}
}

// apply applies a change as docs/reference/api.md describes.
func (c *feedCopy) apply(t *rapid.T, line []byte) {
	var got struct {
		Change  string          `json:"change"`
		Seq     int64           `json:"seq"`
		Entry   json.RawMessage `json:"entry"`
		Event   json.RawMessage `json:"event"`
		EntryID string          `json:"entry_id"`
	}
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if got.Seq <= c.cursor {
		t.Fatalf("number %d after %d", got.Seq, c.cursor)
	}
	c.cursor = got.Seq
	var of struct {
		EntryID  string `json:"entry_id"`
		EventKey string `json:"event_key"`
	}
	switch got.Change {
	case "entry":
		_ = json.Unmarshal(got.Entry, &of)
		c.entries[of.EntryID] = string(got.Entry)
	case "event":
		_ = json.Unmarshal(got.Event, &of)
		if c.events[of.EntryID] == nil {
			c.events[of.EntryID] = map[string]string{}
		}
		c.events[of.EntryID][of.EventKey] = string(got.Event)
	case "entry_removed":
		delete(c.entries, got.EntryID)
		delete(c.events, got.EntryID)
	}
}

// read reads one page, and reports whether the reader is current.
func (c *feedCopy) read(t *rapid.T, s *Store, project string, limit int) (current bool) {
	page, err := s.Changes(context.Background(), change.Ask{
		ProjectID: project, Types: c.types, After: c.cursor, Limit: limit, Format: lists.NDJSON,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	for piece, err := range page.Chunks() {
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(piece)) {
			c.apply(t, []byte(line))
		}
	}
	if page.Examined < c.cursor {
		t.Fatalf("the cursor %d is before the last change, %d", page.Examined, c.cursor)
	}
	c.cursor = page.Examined
	if !page.More && page.Examined != max(page.Last, c.cursor) {
		t.Fatalf("a reader that is current is at %d, the project at %d", page.Examined, page.Last)
	}
	return !page.More
}

// errRolledBack makes a transaction roll back.
var errRolledBack = errors.New("rolled back")

// openTx is a transaction that stays open until end receives a value.
type openTx struct {
	end  chan error // nil: commit
	done chan error
}

// process simulates a writing process. kill ends its statements as if its connections broke.
type process struct {
	context.Context
	kill context.CancelFunc
}

func newProcess() process {
	ctx, kill := context.WithCancel(context.Background())
	return process{ctx, kill}
}

// beginTx opens a transaction that stores entries. The transaction stays open until end receives its outcome, or its
// process is killed.
func beginTx(ctx context.Context, w *Writer, project string, entries []entry.Entry) *openTx {
	h := &openTx{end: make(chan error, 1), done: make(chan error, 1)}
	began := make(chan struct{})
	begin := sync.OnceFunc(func() { close(began) })
	go func() {
		err := w.numbers.inTx(ctx, project, 2*len(entries), func(ctx context.Context, tx numberedTx) error {
			erased, err := tx.erasedOf(ctx, insert.Column(entries, func(e *entry.Entry) string { return e.EntryID }))
			if err != nil {
				return err
			}
			entries = slices.DeleteFunc(entries, func(e entry.Entry) bool { return erased[e.EntryID] })
			if _, err := tx.put(ctx, entriesPut, entryColumnsOf(entries, tx.first)...); err != nil {
				return err
			}
			begin()
			select {
			case err := <-h.end:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		begin() // if the transaction failed before
		h.done <- err
	}()
	<-began
	return h
}

// TestFeedModel runs random histories of writers, transactions that commit late or roll back, removals, processes
// that are killed, and readers. At the end each reader's copy equals the tables. Each history has a project of its own. There
// are 40, or those of -rapid.checks.
func TestFeedModel(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t, Schema())
	reader := openPool(t, db.ReaderURL)
	owner := openPool(t, db.OwnerURL)
	s, w, m := New(reader, reader), NewWriter(openPool(t, db.IngestURL), nil), NewRemover(owner, nil)
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		_ = checks.Value.Set("40")
	}
	history := 0
	rapid.Check(t, func(t *rapid.T) {
		history++
		runHistory(t, fmt.Sprintf("pr_%d", history), s, w, m, owner)
	})
}

// cameBack finds stored rows of erased entries.
const cameBack = `
SELECT r.entry_id FROM removals r JOIN entries e ON e.project_id = $1 AND e.entry_id = r.entry_id
WHERE r.project_id = $1 AND r.reason = 'erased'
UNION ALL
SELECT r.entry_id FROM removals r JOIN events v ON v.project_id = $1 AND v.entry_id = r.entry_id
WHERE r.project_id = $1 AND r.reason = 'erased'`

// runHistory runs one history in a project of its own.
func runHistory(t *rapid.T, project string, s *Store, w *Writer, m *Remover, owner *pgdb.Pool) {
	const ids = 6
	id := rapid.Map(rapid.IntRange(1, ids), func(n int) string { return fmt.Sprintf("en_%d", n) })
	contact := rapid.Map(rapid.IntRange(1, 3), func(n int) string { return fmt.Sprintf("co_%d", n) })
	second := rapid.IntRange(1, 20)
	newEntry := func() entry.Entry {
		return entry.Entry{
			ProjectID: project, EntryID: id.Draw(t, "id"), GroupID: "g", EmbeddableID: "e", ContactID: contact.Draw(t, "contact"),
			UpdatedAt: int64(second.Draw(t, "updated")) * 1e6, Data: fmt.Sprint(second.Draw(t, "data")),
		}
	}
	newEvent := func() entry.Event {
		name := fmt.Sprint(rapid.IntRange(1, 30).Draw(t, "event"))
		return entry.Event{
			ProjectID: project, EntryID: id.Draw(t, "id"), ContactID: contact.Draw(t, "contact"), GroupID: "g", EmbeddableID: "e",
			Timestamp: int64(second.Draw(t, "at")) * 1e6, EventType: "x", EventID: &name,
		}
	}
	some := func(n int) []entry.Entry {
		list := make([]entry.Entry, n)
		for i := range list {
			list[i] = newEntry()
		}
		return list
	}
	unique := func(list []entry.Entry) []entry.Entry {
		seen := map[string]bool{}
		return slices.DeleteFunc(list, func(e entry.Entry) bool {
			twice := seen[e.EntryID]
			seen[e.EntryID] = true
			return twice
		})
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	count := rapid.IntRange(1, 5)
	types := rapid.SampledFrom([]change.Types{change.All, change.Entry | change.Removal, change.Event | change.Removal})
	readers := []*feedCopy{newCopy(change.All), newCopy(types.Draw(t, "types")), newCopy(types.Draw(t, "types"))}

	writing := newProcess()
	var late *openTx // the open transaction, for which the others wait
	var waiting []func()
	settle := func() {
		if late != nil {
			if rapid.Bool().Draw(t, "commit") {
				late.end <- nil
			} else {
				late.end <- errRolledBack
			}
			if err := <-late.done; err != nil && !errors.Is(err, errRolledBack) && writing.Err() == nil {
				t.Fatal(err)
			}
			late = nil
		}
		for _, wait := range waiting {
			wait()
		}
		waiting = nil
	}
	// write runs at once, or concurrently with the next steps and after the open transaction. It is repeated if its
	// process was killed, as senders do.
	write := func(do func(ctx context.Context) error) {
		done := make(chan error, 1)
		ctx := writing.Context
		go func() { done <- do(ctx) }()
		wait := func() {
			err := <-done
			if ctx.Err() != nil && err != nil {
				err = do(context.Background())
			}
			must(err)
		}
		if late == nil && rapid.Bool().Draw(t, "alone") {
			wait()
		} else {
			waiting = append(waiting, wait)
		}
	}
	for range rapid.IntRange(30, 40).Draw(t, "steps") {
		switch rapid.IntRange(0, 12).Draw(t, "step") {
		case 0, 1, 2:
			entries := some(count.Draw(t, "entries"))
			write(func(ctx context.Context) error { _, err := w.PutEntries(ctx, project, entries); return err })
		case 3, 4:
			events := []entry.Event{newEvent(), newEvent()}
			if events[0].Key() == events[1].Key() {
				events = events[:1]
			}
			write(func(ctx context.Context) error { _, err := w.PutEvents(ctx, project, events); return err })
		case 5:
			if late == nil {
				late = beginTx(writing.Context, w, project, unique(some(count.Draw(t, "late"))))
			} else {
				settle()
			}
		case 6:
			target := id.Draw(t, "erase")
			if rapid.IntRange(0, 3).Draw(t, "rarely") == 0 {
				write(func(ctx context.Context) error { _, err := m.Erase(ctx, project, target); return err })
			}
		case 7:
			before := int64(second.Draw(t, "before")) * 1e6
			write(func(ctx context.Context) error { _, _, err := m.Purge(ctx, project, before, ""); return err })
		case 8:
			if rapid.IntRange(0, 3).Draw(t, "rarely") == 0 {
				writing.kill()
				settle()
				writing = newProcess()
			}
		default:
			r := readers[rapid.IntRange(0, len(readers)-1).Draw(t, "reader")]
			r.read(t, s, project, count.Draw(t, "limit"))
		}
	}
	settle()
	last, err := s.LastSeq(context.Background(), project)
	must(err)
	must(owner.Query(context.Background(), func(rows pgx.Rows) error {
		back, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if len(back) > 0 {
			t.Fatalf("erased entries came back: %v", back)
		}
		return err
	}, cameBack, project))
	want := tables(t, s, project)
	for _, r := range append(readers, newCopy(change.All)) {
		for begin := time.Now(); !r.read(t, s, project, count.Draw(t, "limit")) || r.cursor < last; {
			if time.Since(begin) > time.Minute {
				t.Fatal("the feed does not end")
			}
		}
		entries, events := want.entries, want.events
		if r.types&change.Entry == 0 {
			entries = map[string]string{}
		}
		if r.types&change.Event == 0 {
			events = map[string]map[string]string{}
		}
		maps.DeleteFunc(r.events, func(_ string, of map[string]string) bool { return len(of) == 0 })
		if diff := gocmp.Diff([]any{entries, events}, []any{r.entries, r.events}); diff != "" {
			t.Fatalf("the copy of %s differs (-tables +copy):\n%s", r.types, diff)
		}
	}
}

// tables returns the contents of the tables, read without a limit.
func tables(t *rapid.T, s *Store, project string) *feedCopy {
	all := newCopy(change.All)
	query := changeQuery(s.primary, project, change.Entry|change.Event)
	list, err := lists.Open(context.Background(), query, lists.Page{
		End: lists.Position{Key: math.MaxInt64}, Limit: lists.All, Format: lists.NDJSON,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	for piece, err := range list.Chunks() {
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(piece)) {
			all.apply(t, []byte(line))
		}
	}
	return all
}

// openPool opens a pool that waits for a busy machine, and is closed when the test ends.
func openPool(t *testing.T, url string) *pgdb.Pool {
	t.Helper()
	return pgtest.Pool(t, url, pgdb.Options{Name: "test", AcquireTimeout: time.Minute})
}
