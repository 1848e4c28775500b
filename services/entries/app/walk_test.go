package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/lectern-dev/lectern/shared/testing/servicetest"
)

// row is an entry in the model.
type row struct {
	id               string
	created, updated int // seconds into 2022
	embeddable       string
	contact, group   string
}

// table is a project's entries in the database and in a naive model. Each change is applied to both.
type table struct {
	t       *rapid.T
	project string
	pool    *pgxpool.Pool
	rows    map[string]row
	n       int
}

func (m *table) exec(sql string, args ...any) {
	if _, err := m.pool.Exec(context.Background(), sql, args...); err != nil {
		m.t.Fatalf("%s: %v", sql, err)
	}
}

func (m *table) put(r row) {
	m.rows[r.id] = r
	m.exec(`INSERT INTO entries VALUES ($1, $2, $3, $4, $5, $6, $7, '{}', 1)
		ON CONFLICT (project_id, entry_id) DO UPDATE SET created_at = excluded.created_at, updated_at = excluded.updated_at,
			group_id = excluded.group_id, embeddable_id = excluded.embeddable_id, contact_id = excluded.contact_id`,
		m.project, r.id, r.group, r.embeddable, r.contact, at(r.created), at(r.updated))
}

func (m *table) drop(id string) {
	delete(m.rows, id)
	m.exec(`DELETE FROM entries WHERE project_id = $1 AND entry_id = $2`, m.project, id)
}

// update gives a row a random time and random ids, and stores it.
func (m *table) update(r *row) {
	one := rapid.SampledFrom([]string{"a", "b"})
	r.updated = rapid.IntRange(0, 8).Draw(m.t, "updated")
	r.embeddable, r.contact, r.group = one.Draw(m.t, "embeddable"), one.Draw(m.t, "contact"), one.Draw(m.t, "group")
	m.put(*r)
}

// change inserts, updates or deletes a row at random, and returns its id.
func (m *table) change() string {
	second := rapid.IntRange(0, 8)
	old := slices.Sorted(func(yield func(string) bool) {
		for id := range m.rows {
			if !yield(id) {
				return
			}
		}
	})
	if len(old) == 0 || rapid.IntRange(0, 2).Draw(m.t, "what") == 0 {
		m.n++
		r := row{id: fmt.Sprintf("%c-%d", 'a'+rapid.IntRange(0, 25).Draw(m.t, "prefix"), m.n), created: second.Draw(m.t, "created")}
		m.update(&r)
		return r.id
	}
	id := rapid.SampledFrom(old).Draw(m.t, "id")
	if rapid.Bool().Draw(m.t, "delete") {
		m.drop(id)
	} else {
		r := m.rows[id]
		m.update(&r)
	}
	return id
}

// list returns the ids of a list of the naive model.
func (m *table) list(sort string, ascending bool, after, before int, q url.Values) []string {
	var rows []row
	for _, r := range m.rows {
		if r.updated > after && r.updated < before && slices.Contains([]string{"", r.embeddable}, q.Get("embeddable_id")) &&
			slices.Contains([]string{"", r.contact}, q.Get("contact_id")) && slices.Contains([]string{"", r.group}, q.Get("group_id")) {
			rows = append(rows, r)
		}
	}
	key := func(r row) int {
		if sort == "created_at" {
			return r.created
		}
		return r.updated
	}
	slices.SortFunc(rows, func(a, b row) int {
		c := cmp.Or(cmp.Compare(key(a), key(b)), strings.Compare(a.id, b.id))
		if ascending {
			return c
		}
		return -c
	})
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.id
	}
	return ids
}

// TestListsEqualModel compares filters, order and walks with a naive model on random data. It also walks while rows
// change: each unchanged row comes exactly once, and no row comes twice in an answer.
func TestListsEqualModel(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	pool, err := pgxpool.New(t.Context(), s.DB.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	rapid.Check(t, func(rt *rapid.T) {
		m := &table{t: rt, project: project, pool: pool, rows: map[string]row{}}
		m.exec(`DELETE FROM entries WHERE project_id = $1`, project)
		for range rapid.IntRange(0, 40).Draw(rt, "rows") {
			m.change()
		}
		path := rapid.SampledFrom([]string{"entries", "entries-page-views"}).Draw(rt, "list")
		q := url.Values{"limit": {fmt.Sprint(rapid.IntRange(1, 12).Draw(rt, "limit"))}}
		sort, ascending, after, before := "updated_at", rapid.Bool().Draw(rt, "ascending"), -1, 100
		if path == "entries" && rapid.Bool().Draw(rt, "by creation") {
			sort = "created_at"
			q.Set("sort", sort)
		}
		if ascending {
			q.Set("direction", "ASC")
		}
		if rapid.Bool().Draw(rt, "has after") {
			after = rapid.IntRange(0, 8).Draw(rt, "after")
			q.Set("updated_after", at(after).Format(time.RFC3339))
		}
		if rapid.Bool().Draw(rt, "has before") {
			before = rapid.IntRange(0, 8).Draw(rt, "before")
			q.Set("updated_before", at(before).Format(time.RFC3339))
		}
		for _, name := range []string{"embeddable_id", "contact_id", "group_id"} {
			if rapid.Bool().Draw(rt, "has "+name) {
				q.Set(name, rapid.SampledFrom([]string{"a", "b"}).Draw(rt, name))
			}
		}
		target := "/projects/" + project + "/" + path + "?" + q.Encode()

		want := m.list(sort, ascending, after, before, q)
		if got := servicetest.Column(s.Walk(t, key, target, nil), "entry_id"); !slices.Equal(got, want) {
			rt.Fatalf("%s: %s", target, gocmp.Diff(want, got))
		}
		changed := map[string]bool{}
		got := map[string]int{}
		for _, id := range servicetest.Column(s.Walk(t, key, target, func() {
			for range rapid.IntRange(0, 5).Draw(rt, "changes") {
				changed[m.change()] = true
			}
		}), "entry_id") {
			got[id]++
		}
		for _, id := range want {
			if !changed[id] && got[id] != 1 {
				rt.Fatalf("%s: unchanged %s came %d times", target, id, got[id])
			}
		}
	})
}

// TestWalkOfEvents walks an entry's events by every limit and in both directions. Timestamps are equal, and events
// arrive during the walk.
func TestWalkOfEvents(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	s.MustIngest(t, "entries", newEntry(project, "en_1", at(1)))
	random := rand.New(rand.NewPCG(1, 2))
	var events []any
	for i := range 60 {
		events = append(events, pageView(project, "en_1", i, at(random.IntN(6))))
	}
	s.MustIngest(t, "events", events...)
	added := 1000
	for limit := 1; limit <= 25; limit += 3 {
		for _, direction := range []string{"ASC", "DESC"} {
			path := fmt.Sprintf("/projects/"+project+"/entries/en_1/events?limit=%d&direction=%s", limit, direction)
			times := map[any]int{}
			last := ""
			for _, e := range s.Walk(t, key, path, func() {
				added++
				s.MustIngest(t, "events", pageView(project, "en_1", added, at(random.IntN(6))))
			}) {
				times[e["page_index"]]++
				when := e["timestamp"].(string)
				if last != "" && (direction == "ASC") == (when < last) && when != last {
					t.Fatalf("%s: %s after %s", path, when, last)
				}
				last = when
			}
			for i := range 60 {
				if times[float64(i)] != 1 {
					t.Fatalf("%s: event %d came %d times", path, i, times[float64(i)])
				}
			}
			s.Exec(t, `DELETE FROM events WHERE project_id = $1 AND page_index > 1000`, project)
		}
	}
}

// TestBigListUnderUpdates streams 12,000 entries, in several chunks, while at most 3,000 rows move within the list. No row
// comes twice, and the next page begins exactly after the last row.
func TestBigListUnderUpdates(t *testing.T) {
	t.Parallel()
	s, own, _ := shared(t)
	const n, most = 13_000, 3_000
	for i, list := range []string{
		"entries?direction=ASC&limit=12000", "entries?sort=created_at&limit=12000",
		"entries?direction=DESC&limit=12000", "entries-page-views?direction=ASC&limit=12000",
	} {
		t.Run(list, func(t *testing.T) {
			project := fmt.Sprintf("%s_%d", own, i)
			key := s.Keys.Key(project)
			path := "/projects/" + project + "/" + list
			fill(t, s, project, n)
			stop := move(t, s, project, n, most)
			records, a := s.List(t, key, path)
			seen := make(map[string]bool, n)
			for _, id := range servicetest.Column(records, "entry_id") {
				if seen[id] {
					t.Fatalf("%s came twice", id)
				}
				seen[id] = true
			}
			stop()
			// The page ends at a settled row, and lacks the rows that moved past that row.
			next := a.Header.Get("X-Next-Cursor")
			if len(records) < 12_000-most || next == "" {
				t.Fatalf("%d rows, next %q", len(records), next)
			}
			// A row that did not move comes once, on this page or on later ones.
			still := unmoved(t, s, project)
			for _, id := range servicetest.Column(s.Walk(t, key, path+"&cursor="+next, nil), "entry_id") {
				if seen[id] && still[id] {
					t.Fatalf("%s is on two pages and did not move", id)
				}
				seen[id] = true
			}
			for id := range still {
				if !seen[id] {
					t.Fatalf("%s did not move and is on no page", id)
				}
			}
		})
	}
}

// move gives random rows another time until stop is called or so many have moved. The first row has moved when move
// returns. No row gets an earlier updated_at, which ingest refuses, and from which a descending list need not protect.
func move(t *testing.T, s *servicetest.Service, project string, n, most int) (stop func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DB.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	next := func() error {
		i, by := 1+random.IntN(n), 1+random.IntN(n/2)
		_, err := conn.Exec(context.Background(), `
			UPDATE entries SET updated_at = greatest(updated_at, $3), created_at = $4, group_id = 'moved'
			WHERE project_id = $1 AND entry_id = $2`, project, fmt.Sprintf("en_%07d", i), at(i/2+by), at(i%1000+by))
		return err
	}
	if err := next(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		var err error
		for moved := 1; moved < most && ctx.Err() == nil && err == nil; moved++ {
			err = next()
		}
		ended <- err
	}()
	return func() {
		t.Helper()
		cancel()
		if err := errors.Join(<-ended, conn.Close(context.Background())); err != nil {
			t.Fatal(err)
		}
	}
}

func unmoved(t *testing.T, s *servicetest.Service, project string) map[string]bool {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DB.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), `SELECT entry_id FROM entries WHERE project_id = $1 AND group_id <> 'moved'`, project)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	set := make(map[string]bool, len(list))
	for _, id := range list {
		set[id] = true
	}
	return set
}

// TestManyPageViewsOfOneEntry checks that all page views of an entry are listed in order and in bounded chunks, however
// many there are.
func TestManyPageViewsOfOneEntry(t *testing.T) {
	t.Parallel()
	s, project, key := shared(t)
	s.MustIngest(t, "entries", newEntry(project, "a", at(1)), newEntry(project, "b", at(2)), newEntry(project, "c", at(3)))
	for entry, n := range map[string]int{"a": 4999, "b": 5001, "c": 12000} {
		s.Exec(t, `
			INSERT INTO events (project_id, event_key, entry_id, contact_id, group_id, embeddable_id, "timestamp",
			                    page_id, page_key, page_index, event_type, seq)
			SELECT $3, decode(md5($1 || i), 'hex'), $1, 'c', 'g', 'e', '2022-01-01Z'::timestamptz + (i / 3) * interval '1 s', 'p', 'p', i, 'flowpage.viewed', i
			FROM generate_series(1, $2::int) i`, entry, n, project)
	}
	for _, query := range []string{"?direction=ASC", "?direction=ASC&limit=1", "?limit=2"} {
		for _, item := range s.Walk(t, key, "/projects/"+project+"/entries-page-views"+query+"", nil) {
			views := item["page_views"].([]any)
			want := map[any]int{"a": 4999, "b": 5001, "c": 12000}[item["entry_id"]]
			if len(views) != want {
				t.Fatalf("%s: %s has %d page views, want %d", query, item["entry_id"], len(views), want)
			}
			for i, v := range views {
				if got := v.(object)["page_index"]; got != float64(i+1) {
					t.Fatalf("%s: page view %d of %s is %v", query, i+1, item["entry_id"], got)
				}
			}
		}
	}
}
