package copiestest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/postgres"
	"github.com/lectern-dev/lectern/copies/push"
	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/postgres/pglocal"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/golden"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

// small is a copy whose batches are small.
type small struct{ *postgres.Destination }

func (small) Limits() copies.Limits { return copies.Limits{Changes: 20, Bytes: 8 << 10} }

// warehouse is a database for copies.
type warehouse struct {
	*source
	url string
	sql *pgx.Conn
}

func newWarehouse(t *testing.T) *warehouse {
	t.Helper()
	db := pgtest.Database(t, empty("warehouse"))
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return &warehouse{newSource(t), db.OwnerURL, conn}
}

func (w *warehouse) options() postgres.Options {
	return postgres.Options{URL: w.url, Schema: "Copy of shop", Source: w.is(), Columns: columns.Choice{All: true}, LockWait: 5 * time.Minute}
}

func (w *warehouse) open(t *testing.T, o postgres.Options) *postgres.Destination {
	t.Helper()
	d, err := postgres.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// sync copies until the copy is current.
func (w *warehouse) sync(ctx context.Context, d copies.Destination) (copies.Progress, error) {
	return copies.Run(ctx, copies.Options{Client: w.client, Source: w.is(), Destination: d, Project: true, PageSize: 7, Attempts: 20})
}

func (w *warehouse) mustSync(t *testing.T, o postgres.Options) copies.Progress {
	t.Helper()
	p, err := w.sync(t.Context(), small{w.open(t, o)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (w *warehouse) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := w.sql.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (w *warehouse) value(t *testing.T, sql string) (text string) {
	t.Helper()
	if err := w.sql.QueryRow(t.Context(), sql).Scan(&text); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return text
}

// copied reads the copy's current rows by SQL alone, in the shape of the API.
func (w *warehouse) copied(t *testing.T) rows {
	t.Helper()
	read := func(table, key string) map[string]row {
		found, err := w.sql.Query(t.Context(), `SELECT row_to_json(t)::text FROM "Copy of shop".`+table+` AS t WHERE removed_at IS NULL`)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(found, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]row{}
		for _, line := range lines {
			var r row
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			delete(r, "removed_at")
			delete(r, "removal_reason")
			delete(r, "entry_columns")
			all[r[key].(string)] = r
		}
		return all
	}
	return rows{read("entries", "entry_id"), read("events", "event_key")}
}

// check compares the copy with the source, row by row.
func (w *warehouse) check(t *testing.T) {
	t.Helper()
	want, got := w.records(t), w.copied(t)
	for _, r := range want.entries {
		delete(r, "entry_data")
	}
	for id, r := range got.entries {
		delete(r, "entry_data")
		delete(r, "entry_data_text")
		got.entries[id] = r
	}
	for _, all := range []map[string]row{want.entries, got.entries, want.events, got.events} {
		for _, r := range all {
			for _, name := range []string{"created_at", "updated_at", "timestamp"} {
				if text, ok := r[name].(string); ok {
					at, err := time.Parse(time.RFC3339Nano, strings.TrimSuffix(text, " BC"))
					if err != nil {
						t.Fatal(err)
					}
					r[name] = at.UTC()
				}
			}
		}
	}
	if diff := cmp.Diff(want.entries, got.entries); diff != "" {
		t.Errorf("entries, -source +copy: %s", diff)
	}
	if diff := cmp.Diff(want.events, got.events); diff != "" {
		t.Errorf("events, -source +copy: %s", diff)
	}
	// The jsonb column holds the same JSON. JSON that jsonb cannot hold is in the text column byte for byte.
	for e, err := range w.client.Entries(t.Context(), project, client.EntryQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		var same, refused bool
		err := w.sql.QueryRow(t.Context(), `SELECT coalesce(entry_data_text = $2, false), entry_data IS NULL FROM "Copy of shop".entries WHERE entry_id = $1`,
			e.EntryID, e.Data).Scan(&same, &refused)
		if err == nil && !refused {
			err = w.sql.QueryRow(t.Context(), `SELECT entry_data = $2::text::jsonb AND entry_data_text IS NULL FROM "Copy of shop".entries WHERE entry_id = $1`,
				e.EntryID, e.Data).Scan(&same)
		}
		if err != nil || !same {
			t.Errorf("%s: the copy has other data than %.100s (%v)", e.EntryID, e.Data, err)
		}
	}
}

// forgets checks by pg_dump that an erased person leaves the copy.
func (w *warehouse) forgets(t *testing.T, o postgres.Options) {
	t.Helper()
	bin, err := pglocal.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	dumped := func() int {
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "pg_dump"), "--dbname", w.url).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(out), "Ada-canary")
	}
	w.person(t, "en_ada", "Ada-canary")
	w.mustSync(t, o)
	if n := dumped(); n < 5 {
		t.Errorf("the dump of the copy has the person %d times; want the contact of the entry and the event, the answer, the URL and the page", n)
	}
	w.remove(t, "erased", "en_ada")
	w.mustSync(t, o)
	if n := dumped(); n > 0 {
		t.Errorf("the dump of the copy still has the person %d times", n)
	}
}

func TestPostgresCopyEqualsTheSource(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.fill(t, 0, 60)
	odd := map[string]bool{ // whether jsonb refuses it
		`{"a":"\u0000"}`: true, `{"a":"\ud800"}`: true, `{"a":1e200000}`: true, strings.Repeat("[", 9000) + strings.Repeat("]", 9000): false,
		`{"a":"\u00e4\ud83d\ude00"}`: false, `{"a":1e3,"a":2}`: false, `null`: false, `"\\u0000"`: false, ` [1.50] `: false,
		`{"a":"` + strings.Repeat("x", 20_000) + `"}`: false, `{"1e5":"é"}`: false,
	}
	refused, n := int64(0), 0
	for data, no := range odd {
		w.MustIngest(t, "entries", entry(fmt.Sprintf("en_odd_%d", n), n, data))
		if n++; no {
			refused++
		}
	}
	d := w.open(t, w.options())
	p, err := w.sync(t.Context(), small{d})
	if err != nil || p.Changes != int64(180+n) || !p.Current || d.AsText() != refused {
		t.Fatalf("%+v, %v, %d as text; want %d changes and %d as text", p, err, d.AsText(), 180+n, refused)
	}
	w.check(t)
	const indexes = `SELECT string_agg(indexname, ' ' ORDER BY indexname COLLATE "C") FROM pg_indexes WHERE tablename IN ('entries', 'events')`
	if got := w.value(t, indexes); got != "entries_by_embeddable entries_by_seq entries_pkey events_by_entry events_by_seq events_pkey" {
		t.Errorf("the indexes are %s", got)
	}

	// Changes of one batch and of several: an update, an update and a removal, and a removal of what comes back.
	w.MustIngest(t, "entries", entry("en_1", 900, `{"again":true}`))
	w.remove(t, "erased", "en_2", "en_3", "never came")
	w.remove(t, "purged", "en_4")
	w.MustIngest(t, "entries", entry("en_4", 901, `{"back":1}`))
	w.MustIngest(t, "events", event("en_4", 8), event("en_4", 77))
	w.MustIngest(t, "entries", entry("new", 902, `{}`))
	w.remove(t, "purged", "new")
	if p := w.mustSync(t, w.options()); p.Changes == 0 || p.Changes > 10 {
		t.Errorf("%d changes; want the new ones alone", p.Changes)
	}
	w.check(t)
	if p := w.mustSync(t, w.options()); p.Changes != 0 || !p.Current {
		t.Errorf("%+v; want none", p)
	}
	w.forgets(t, w.options())
}

func TestPostgresSoftDelete(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	o := w.options()
	o.SoftDelete = true
	w.fill(t, 0, 4)
	w.mustSync(t, o)
	w.remove(t, "erased", "en_3")
	w.remove(t, "purged", "en_1", "en_2")
	w.mustSync(t, o)
	w.check(t)
	const marked = `SELECT string_agg(entry_id || ' ' || removal_reason, ',' ORDER BY entry_id, seq) FROM "Copy of shop".`
	if e, v := w.value(t, marked+"entries"), w.value(t, marked+"events"); e != "en_1 purged,en_2 purged" || v != "en_1 purged,en_1 purged,en_2 purged,en_2 purged" {
		t.Errorf("marked are entries %q and events %q", e, v)
	}
	w.MustIngest(t, "entries", entry("en_2", 900, `{"back":1}`))
	w.MustIngest(t, "events", event("en_2", 4)) // one of the two that were removed
	w.mustSync(t, o)
	w.check(t)
	if e, v := w.value(t, marked+"entries"), w.value(t, marked+"events"); e != "en_1 purged" || v != "en_1 purged,en_1 purged,en_2 purged" {
		t.Errorf("marked are entries %q and events %q", e, v)
	}
	w.forgets(t, o)
	o.SoftDelete = false
	if _, err := w.sync(t.Context(), small{w.open(t, o)}); err == nil || !strings.Contains(err.Error(), "give --soft-delete as before") {
		t.Errorf("without --soft-delete: %v", err)
	}
}

// A copy is exact although its connection and its process are killed while sources write and remove.
func TestPostgresKilled(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.fill(t, 0, 100)
	w.remove(t, "purged", "en_98", "en_99")
	w.fill(t, 99, 1)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for i := range 12 {
			w.fill(t, 50+10*i, 20) // half of them again
			w.remove(t, "purged", fmt.Sprintf("en_%d", 60+10*i), fmt.Sprintf("en_%d", i))
		}
	}()
	killer, err := pgx.Connect(t.Context(), w.url)
	if err != nil {
		t.Fatal(err)
	}
	defer killer.Close(context.Background())
	cut, terminated := 0, 0
	for writing := true; writing; {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(20+rand.IntN(150))*time.Millisecond, errors.New("killed"))
		done := make(chan error, 1)
		go func() {
			_, err := w.sync(ctx, small{w.open(t, w.options())})
			done <- err
		}()
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		var n int
		if err := killer.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'lectern sync' AND datname = current_database()`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		terminated += n
		if err := <-done; err != nil {
			cut++
		}
		cancel()
		select {
		case <-stopped:
			writing = false
		default:
		}
	}
	t.Logf("%d runs were cut, %d connections killed", cut, terminated)
	w.mustSync(t, w.options())
	w.check(t)
}

// late is a copy whose database is out of reach at first.
type late struct {
	*postgres.Destination
	failures *int
}

func (l late) Open(ctx context.Context) (copies.Position, error) {
	if *l.failures++; *l.failures == 1 {
		return copies.Position{}, copies.Temporary(errors.New("out of reach"))
	}
	return l.Destination.Open(ctx)
}

// A sync that follows waits for a destination that is out of reach at its start. Another one fails.
func TestDestinationOutOfReachAtTheStart(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.fill(t, 0, 3)
	if _, err := w.sync(t.Context(), late{w.open(t, w.options()), new(int)}); err == nil || !strings.Contains(err.Error(), "out of reach") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := copies.Run(ctx, copies.Options{
		Client: w.client, Source: w.is(), Destination: late{w.open(t, w.options()), new(int)}, Follow: true, PageSize: 7, Attempts: 2,
		Progress: func(p copies.Progress) {
			if p.Current {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.check(t)
}

// waiting is a copy that says when it is open, and waits then.
type waiting struct {
	*postgres.Destination
	opened, proceed chan struct{}
}

func (w waiting) Apply(ctx context.Context, b *copies.Batch) error {
	select {
	case w.opened <- struct{}{}:
		<-w.proceed
	default:
	}
	return w.Destination.Apply(ctx, b)
}

func TestPostgresTakesOneSyncAtATime(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.fill(t, 0, 5)
	o := w.options()
	var notes []string
	o.Note = func(text string) { notes = append(notes, text) }
	first := waiting{w.open(t, o), make(chan struct{}), make(chan struct{})}
	done := make(chan error)
	go func() {
		_, err := w.sync(t.Context(), first)
		done <- err
	}()
	<-first.opened
	impatient := w.options()
	impatient.LockWait = 50 * time.Millisecond
	_, err := w.sync(t.Context(), w.open(t, impatient))
	if err == nil || !strings.Contains(err.Error(), "another sync writes to the schema Copy of shop") || !strings.Contains(err.Error(), "Postgres process") {
		t.Errorf("the second: %v", err)
	}
	// A receiver's state is another thing, also in the same schema.
	state, err := push.New(push.Options{URL: "http://localhost", Secret: push.Secret(make([]byte, 24)), Source: w.is(), State: w.url, Schema: "Copy of shop"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := state.Close(); err != nil {
		t.Error(err)
	}

	// A query that holds a table does not delay the end of the first load.
	reader, err := w.sql.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), `SELECT FROM "Copy of shop".entries`); err != nil {
		t.Fatal(err)
	}
	close(first.proceed)
	if err := <-done; err != nil {
		t.Errorf("the first: %v", err)
	}
	if err := reader.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	const keys = `SELECT string_agg(conname, ' ') FROM pg_constraint WHERE contype = 'p' AND conrelid IN ('"Copy of shop".entries'::regclass, '"Copy of shop".events'::regclass)`
	if got := w.value(t, keys); got != "events_pkey" || !slices.ContainsFunc(notes, func(n string) bool {
		return strings.Contains(n, "entries, so it has a unique index and no primary key.")
	}) {
		t.Errorf("the keys are %s, notes: %q", got, notes)
	}
	w.MustIngest(t, "entries", entry("en_1", 900, `{"again":true}`))
	w.mustSync(t, w.options())
	w.check(t)
	if got := w.value(t, keys); got != "events_pkey entries_pkey" && got != "entries_pkey events_pkey" {
		t.Errorf("the next run makes the keys %s", got)
	}
}

func TestPostgresRefusesWhatIsNotItsCopy(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.fill(t, 0, 3)
	w.mustSync(t, w.options())
	w.exec(t, `CREATE SCHEMA other; CREATE TABLE other.events (a int)`)
	was := w.copied(t)
	alter := func(change func(*postgres.Options)) postgres.Options {
		o := w.options()
		change(&o)
		return o
	}
	through := func(change func(*url.URL)) postgres.Options {
		u, err := url.Parse(w.url)
		if err != nil {
			t.Fatal(err)
		}
		change(u)
		return alter(func(o *postgres.Options) { o.URL = u.String() })
	}
	same := w.options()
	for _, tt := range []struct {
		name        string
		do, undo    string
		to          postgres.Options
		says, says2 string
	}{
		{"another project", "", "", alter(func(o *postgres.Options) { o.Source.ProjectID = "pr_2" }), `a copy of project "pr_1", not of "pr_2"`, "--schema"},
		{"another URL", "", "", alter(func(o *postgres.Options) { o.Source.URL = "https://new" }), "not at https://new", "--moved"},
		{"tables of others", "", "", alter(func(o *postgres.Options) { o.Schema = "other" }), "(events, without lectern_sync)", "--schema"},
		{"another layout", `UPDATE "Copy of shop".lectern_sync SET layout = 9`, `UPDATE "Copy of shop".lectern_sync SET layout = 4`, same, "layout 9", "writes layout 4"},
		{"a dropped column", `ALTER TABLE "Copy of shop".entries RENAME contact_id TO c`, `ALTER TABLE "Copy of shop".entries RENAME c TO contact_id`, same, "lacks the column contact_id (text)", "--schema"},
		{"another type", `ALTER TABLE "Copy of shop".events ALTER total_pages TYPE text`, `ALTER TABLE "Copy of shop".events ALTER total_pages TYPE bigint USING total_pages::bigint`, same, "total_pages", "needs bigint"},
		{"a dropped table", `ALTER TABLE "Copy of shop".events RENAME TO e`, `ALTER TABLE "Copy of shop".e RENAME TO events`, same, "lacks the table events", "--schema"},
		{"no database", "", "", through(func(u *url.URL) { u.Path = "/nowhere" }), "no such database", "--to"},
		{"an unknown role", "", "", through(func(u *url.URL) { u.User = url.UserPassword("stranger", "secret-1") }), "stranger", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.do != "" {
				w.exec(t, tt.do)
			}
			_, err := w.sync(t.Context(), w.open(t, tt.to))
			if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), tt.says2) || strings.Contains(err.Error(), "secret-1") {
				t.Errorf("%v; want %q and %q", err, tt.says, tt.says2)
			}
			if tt.undo != "" {
				w.exec(t, tt.undo)
			}
		})
	}
	if diff := cmp.Diff(was, w.copied(t), cmp.AllowUnexported(rows{})); diff != "" {
		t.Error(diff)
	}
	moved := alter(func(o *postgres.Options) { o.Source.URL, o.Moved = "https://new", true })
	w.mustSync(t, moved)
	if u := w.value(t, `SELECT url FROM "Copy of shop".lectern_sync`); u != "https://new" {
		t.Errorf("the copy is of %s", u)
	}
}

// TestPostgresInADatabaseOfOthers checks that a copy stands all that the owner of a database does to its tables and roles, or
// refuses that by name.
func TestPostgresInADatabaseOfOthers(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.source = newWholeSource(t)
	role := w.value(t, `SELECT format('%I IN DATABASE %I', current_user, current_database())`)
	w.define(t, "emb_1", 1, "draft", 1)
	// The first load has no keys yet.
	w.fill(t, 0, 30)
	d := small{w.open(t, w.options())}
	if _, err := d.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"entries", "events", "embeddables", "embeddable_versions", "experiments", "experiment_history", "lectern_sync", "lectern_columns"} {
		w.exec(t, `CREATE PUBLICATION of_`+table+` FOR TABLE "Copy of shop".`+table) // as one of all tables, which needs a superuser
		w.exec(t, `UPDATE "Copy of shop".`+table+` SET `+w.value(t, `SELECT attname || ' = ' || attname FROM pg_attribute WHERE attnum = 1 AND attrelid = '"Copy of shop".`+table+`'::regclass`)+` WHERE false;
			DELETE FROM "Copy of shop".`+table+` WHERE false`)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	const tables = `"Copy of shop".entries`
	for i, tt := range []struct{ name, do, undo, says string }{
		{"publications", `SELECT 1`, ``, ``},
		{"an identity of none", `ALTER TABLE ` + tables + ` REPLICA IDENTITY NOTHING`, `ALTER TABLE ` + tables + ` REPLICA IDENTITY DEFAULT`, "a publication has one of the copy's tables"},
		{"a column list", `CREATE PUBLICATION of_contacts FOR TABLE ` + tables + ` (contact_id)`, `DROP PUBLICATION of_contacts`, "publishes them without the columns of their keys"},
		{"row security", `ALTER TABLE ` + tables + ` ENABLE ROW LEVEL SECURITY`, `ALTER TABLE ` + tables + ` DISABLE ROW LEVEL SECURITY`, ``},
		{"row security of owners", `ALTER TABLE ` + tables + ` ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY`, `ALTER TABLE ` + tables + ` DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY`, "row security must not apply"},
		{"settings of the role", `ALTER ROLE ` + role + ` SET statement_timeout = '1ms'; ALTER ROLE ` + role + ` SET search_path = public, pg_temp`, `ALTER ROLE ` + role + ` RESET ALL`, ``},
		{"columns of others", `ALTER TABLE ` + tables + ` ADD plain boolean, ADD n int, ADD data text DEFAULT 'x'`, ``, ``},
		{"a unique index of others", `CREATE UNIQUE INDEX one_each ON ` + tables + ` (group_id, (entry_data ->> 'same'))`, `DROP INDEX "Copy of shop".one_each`, "a unique index that lectern sync did not make"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.exec(t, tt.do)
			w.fill(t, 10*i, 30)
			other := i + 1000
			if strings.Contains(tt.name, "unique") {
				other = i
			}
			w.MustIngest(t, "entries", entry(fmt.Sprintf("same_%d", i), i, fmt.Sprintf(`{"same":%d}`, i)), entry(fmt.Sprintf("same_%d_again", i), i, fmt.Sprintf(`{"same":%d}`, other)))
			w.remove(t, "erased", fmt.Sprintf("en_%d", 10*i))
			w.define(t, "emb_1", i+2, []string{"running", "paused"}[i%2], i+2)
			var err error
			eventually.True(t, "a session whose own SET is done within the role's limit of 1 ms", func() bool {
				_, err = w.sync(t.Context(), small{w.open(t, w.options())})
				return err == nil || !strings.HasPrefix(err.Error(), "connect ") || !strings.Contains(err.Error(), "57014")
			})
			if tt.undo != "" {
				w.exec(t, tt.undo)
			}
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%v; want %q", err, tt.says)
				}
				w.mustSync(t, w.options())
			} else if err != nil {
				t.Fatal(err)
			}
		})
	}
	w.exec(t, `ALTER TABLE `+tables+` DROP plain, DROP n, DROP data`)
	w.check(t)
}

func TestPostgresKeepsTheCopyOfARemovedProject(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.fill(t, 0, 3)
	w.mustSync(t, w.options())
	for _, table := range []string{"entries", "events", "removals", "project_changes"} {
		w.Exec(t, "DELETE FROM "+table+" WHERE project_id = $1", project)
	}
	if _, err := w.sync(t.Context(), w.open(t, w.options())); !errors.Is(err, copies.ErrRemoved) {
		t.Errorf("%v; want that the project was removed", err)
	}
	_, err := copies.Verify(t.Context(), copies.Verification{
		Options: copies.Options{Client: w.client, Source: w.is(), Destination: w.open(t, w.options()), PageSize: 7, Attempts: 1},
		Folder:  t.TempDir(), Repair: true, Name: func(copies.Difference) error { return nil },
	})
	if !errors.Is(err, copies.ErrRemoved) {
		t.Errorf("repair: %v; want that the project was removed", err)
	}
	if n := len(w.copied(t).entries); n != 3 {
		t.Errorf("the copy has %d entries, want 3", n)
	}
}

func of(embeddable string, e object) object {
	e["embeddable_id"] = embeddable
	return e
}

// Each embeddable has a view with the keys of its entries as columns.
func TestPostgresHasColumns(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	const odd = `o"d'd ` + "\u00fc" // an embeddable
	long := strings.Repeat("long", 30)
	w.MustIngest(t, "entries",
		entry("en_1", 1, `{"n":1.50,"seq":true,"it's":"Zoë","at":"2026-01-02T03:04:05+02:00","none":null}`),
		entry("en_2", 1, `{"n":2,"o":{"a":[1]}}`),
		entry("refused", 1, `{"n":3,"x":"\u0000"}`),
		of(odd, entry("en_3", 1, `{"n":"three"}`)),
		of(long, entry("en_4", 1, `{"n":"four"}`)))
	w.mustSync(t, w.options())
	const view, oddView = `"Copy of shop".entries_of_emb_1`, `"Copy of shop"."entries_of_o""d'd ü"`
	read := func(columns, from, want string) {
		t.Helper()
		if got := w.value(t, `SELECT json_agg(r)::text FROM (SELECT `+columns+` FROM `+from+` ORDER BY entry_id) AS r`); got != want {
			t.Errorf("%s of %s: %s, want %s", columns, from, got, want)
		}
	}
	w.exec(t, `SET TIME ZONE 'UTC'`)
	read(`entry_id, n, data_seq, "it's" AS i, at, o`, view+` WHERE n < 3`, `[{"entry_id":"en_1","n":1.5,"data_seq":true,"i":"Zoë","at":"2026-01-02T01:04:05+00:00","o":null}, `+"\n "+
		`{"entry_id":"en_2","n":2,"data_seq":null,"i":null,"at":null,"o":"{\"a\": [1]}"}]`)
	read(`entry_id, entry_data_text AS text, n, x`, view+` WHERE entry_data IS NULL`, `[{"entry_id":"refused","text":"{\"n\":3,\"x\":\"\\u0000\"}","n":3,"x":null}]`)
	read(`n`, oddView, `[{"n":"three"}]`)
	if names := w.value(t, `SELECT string_agg(relname, ' ' ORDER BY relname COLLATE "C") FROM pg_class WHERE relkind = 'v' AND relname LIKE 'entries\_of\_l%'`); len(names) != 63 {
		t.Errorf("%q", names)
	} else { // an ID like the name of that view
		w.MustIngest(t, "entries", of(strings.TrimPrefix(names, "entries_of_"), entry("en_6", 1, `{"n":"six"}`)))
		w.mustSync(t, w.options())
		read(`n`, `"Copy of shop"."`+names+`"`, `[{"n":"four"}]`)
	}

	// A new column keeps grants; a lost view is made again.
	w.exec(t, `GRANT SELECT ON `+view+` TO PUBLIC; DROP VIEW "Copy of shop".page_views, `+oddView)
	w.MustIngest(t, "entries", entry("en_2", 2, `{"n":2,"later":true}`))
	w.mustSync(t, w.options())
	read(`n, later`, view+` WHERE later`, `[{"n":2,"later":true}]`)
	read(`n`, oddView, `[{"n":"three"}]`)
	w.exec(t, `SELECT FROM "Copy of shop".page_views`)
	if granted := w.value(t, `SELECT count(*)::text FROM information_schema.role_table_grants WHERE table_name = 'entries_of_emb_1' AND grantee = 'PUBLIC'`); granted != "1" {
		t.Errorf("%s grants", granted)
	}

	// A key that has come back with another type, as after a repair.
	w.exec(t, `UPDATE "Copy of shop".lectern_columns SET type = 'text' WHERE key = 'at'`)
	w.MustIngest(t, "entries", entry("en_5", 2, `{"at":"tomorrow"}`))
	w.mustSync(t, w.options())
	read(`at`, view+` WHERE at = 'tomorrow'`, `[{"at":"tomorrow"}]`)

	other := w.options()
	other.Columns = columns.Choice{}
	if _, err := w.sync(t.Context(), small{w.open(t, other)}); err == nil || !strings.Contains(err.Error(), "has a copy with --columns auto, not none") {
		t.Errorf("%v", err)
	}
}

// No answer stops a copy, changes the type of a column, or makes a query of a view fail. A user's objects may use the views, hold locks on them, or
// have their names.
func TestPostgresViewsDelayNothing(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	o := w.options()
	var notes []string
	o.Note = func(text string) { notes = append(notes, text) }
	said := func(text string) (n int) {
		for _, note := range notes {
			if strings.Contains(note, text) {
				n++
			}
		}
		return n
	}
	w.MustIngest(t, "entries", entry("en_1", 1, `{"age":30,"ok":true,"at":"2026-01-02T03:04:05Z","text":{"b":[1 ,1e2]}}`))
	w.mustSync(t, o)
	const view = `"Copy of shop".entries_of_emb_1`
	w.exec(t, `SET TIME ZONE 'UTC'; CREATE VIEW "Copy of shop".report AS SELECT sum(age) AS years FROM `+view+`; CREATE TABLE "Copy of shop".entries_of_taken (a int)`)
	odd := []string{`"n/a"`, `1e400`, `-1e-400`, `9007199254740993`, `0.1000000000000000055`, `"2026-02-30T00:00:00Z"`, `"\u0000"`, `"\ud800"`, `[]`, `{"a":"\ud800"}`, `true`, `null`, `1e1000`, `1e200000`}
	for i, value := range odd {
		w.MustIngest(t, "entries", entry(fmt.Sprintf("odd_%d", i), i, fmt.Sprintf(`{"age":%s,"ok":%[1]s,"at":%[1]s,"text":%[1]s}`, value)))
	}
	w.MustIngest(t, "entries", of("taken", entry("en_2", 1, `{"a":1}`)))
	// A query holds the view, so that it cannot get a column.
	reader, err := w.sql.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), `SELECT FROM `+view); err != nil {
		t.Fatal(err)
	}
	w.MustIngest(t, "entries", entry("en_3", 1, `{"age":12,"later":"x"}`))
	w.mustSync(t, o)
	if err := reader.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if said("entries_of_emb_1") != 1 || said("entries_of_taken") != 1 || said(`13 values of the key "age" of embeddable "emb_1" do not fit its column of type double, such as the value of entry "odd_0".`) != 1 {
		t.Errorf("notes: %q", notes)
	}

	// The next run makes the views. All rows show what a set of columns gives for them.
	w.exec(t, `DROP TABLE "Copy of shop".entries_of_taken`)
	w.mustSync(t, o)
	if got := w.value(t, `SELECT years || ' ' || (SELECT later FROM `+view+` WHERE entry_id = 'en_3') || ' ' || (SELECT a FROM "Copy of shop".entries_of_taken) FROM "Copy of shop".report`); got != "42 x 1" {
		t.Errorf("the report is %s", got)
	}
	set := columns.NewSet([]columns.Column{
		{Key: "age", Type: columns.Double}, {Key: "ok", Type: columns.Boolean}, {Key: "at", Type: columns.Timestamp}, {Key: "text", Type: columns.Text},
	}, true)
	for e, err := range w.client.Entries(t.Context(), project, client.EntryQuery{EmbeddableID: "emb_1"}) {
		if err != nil {
			t.Fatal(err)
		}
		want, age, ok, at, text := make([]any, 4), (*float64)(nil), (*bool)(nil), (*time.Time)(nil), (*string)(nil)
		set.Values(e.Data, want)
		if err := w.sql.QueryRow(t.Context(), `SELECT age, ok, at, text FROM `+view+` WHERE entry_id = $1`, e.EntryID).Scan(&age, &ok, &at, &text); err != nil {
			t.Fatalf("%s: %v", e.Data, err)
		}
		for i, got := range []any{age, ok, at, text} {
			if v := reflect.ValueOf(got); v.IsNil() != (want[i] == nil) || !v.IsNil() && fmt.Sprint(v.Elem()) != fmt.Sprint(want[i]) {
				t.Errorf("%s: column %d is %v, want %v", e.Data, i, got, want[i])
			}
		}
	}
}

// A copy has the whole project, and a dictionary of it that dbt can read.
func TestPostgresHasTheWholeProject(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.source = newWholeSource(t)
	sync := func(c *client.Client) {
		t.Helper()
		_, err := copies.Run(t.Context(), copies.Options{Client: c, Source: w.is(), Destination: w.open(t, w.options()), Project: true, PageSize: 7, Attempts: 1})
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(versions int) {
		t.Helper()
		for _, kind := range []struct {
			table, columns string
			api            func() any
		}{
			{"embeddables", "embeddable_id, title, group_id, project_id, definition AS json_string_prod", func() any {
				return all(t, w.client.Embeddables(t.Context(), project, client.EmbeddableQuery{}), func(e client.Embeddable) (client.EmbeddableWithDefinition, error) {
					return w.client.Embeddable(t.Context(), project, e.EmbeddableID)
				})
			}},
			{"embeddable_versions", "embeddable_id, version_number, to_char(saved_at, 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS saved_at, definition AS json_string", func() any {
				var list []client.EmbeddableVersionWithDefinition
				for _, id := range []string{"emb/2", "emb_1"} {
					list = append(list, all(t, w.client.Versions(t.Context(), project, id, client.VersionQuery{Direction: client.Ascending}), func(v client.EmbeddableVersion) (client.EmbeddableVersionWithDefinition, error) {
						return w.client.Version(t.Context(), project, v.EmbeddableID, v.Number)
					})...)
				}
				if len(list) != versions {
					t.Errorf("%d versions, want %d", len(list), versions)
				}
				return list
			}},
			{"experiments", `experiment_id AS id, experiment_id AS "experimentId", flow_id AS "flowId", name, hypothesis, impact_metrics, no_impact_metrics,
				to_char(created_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS created_at, to_char(updated_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS updated_at,
				observations, outcome, attachments, variants, flow_ids, paused_showing_variant, winner_variant, status`, func() any {
				return all(t, w.client.Experiments(t.Context(), project, client.ExperimentQuery{}), func(e client.Experiment) (client.Experiment, error) { return e, nil })
			}},
		} {
			want, err := json.Marshal(kind.api())
			if err != nil {
				t.Fatal(err)
			}
			sorted := func(text string) (list []row) {
				if err := json.Unmarshal([]byte(text), &list); err != nil {
					t.Fatal(err)
				}
				slices.SortFunc(list, func(a, b row) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
				return list
			}
			got := w.value(t, `SELECT json_agg(r)::text FROM (SELECT `+kind.columns+` FROM "Copy of shop".`+kind.table+`) AS r`)
			if diff := cmp.Diff(sorted(string(want)), sorted(got)); diff != "" {
				t.Errorf("%s, -API +copy: %s", kind.table, diff)
			}
		}
	}
	w.exec(t, `SET TIME ZONE 'UTC'`)
	w.fill(t, 0, 3)
	w.define(t, "emb_1", 12, "draft", 1)
	w.define(t, "emb/2", 1, "running", 1)
	sync(w.client)
	check(13)
	w.define(t, "emb_1", 13, "paused", 2)
	sync(w.client)
	check(14)
	if h := w.value(t, `SELECT string_agg(experiment_id || ' ' || status, ',' ORDER BY experiment_id COLLATE "C", recorded_at) FROM "Copy of shop".experiment_history`); h != "exp_emb/2 running,exp_emb_1 draft,exp_emb_1 paused" {
		t.Errorf("the history is %s", h)
	}
	if n := w.value(t, `SELECT count(*)::text FROM "Copy of shop".page_views WHERE page_key = 'page-1'`); n != "6" {
		t.Errorf("%s page views, want 6", n)
	}
	sync(w.with(t, auth.EntriesRead)) // a key that may not read the rest removes nothing
	check(14)

	const path = "../../../docs/reference/copies-dbt.yml"
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(file), "    tables:")
	golden.Check(t, path, head+w.value(t, dictionary)+"\n")
}

// dictionary writes the comments of the tables as sources of dbt, with tests for keys and columns that are not null.
const dictionary = `
WITH c AS (
    SELECT t.oid, t.relname, a.attnum, a.attname, col_description(t.oid, a.attnum) AS about, a.attnotnull,
        EXISTS (SELECT FROM pg_index i WHERE i.indrelid = t.oid AND i.indisunique AND i.indnatts = 1 AND i.indkey[0] = a.attnum) AS is_key
    FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0
    WHERE t.relnamespace = '"Copy of shop"'::regnamespace AND t.relkind = 'r' AND t.relname NOT LIKE 'lectern%'
), one AS (
    SELECT oid, relname, string_agg(format(E'          - name: %s\n            description: %s%s', attname, to_json(about),
        CASE WHEN is_key THEN E'\n            data_tests: [unique, not_null]' WHEN attnotnull THEN E'\n            data_tests: [not_null]' END), E'\n' ORDER BY attnum) AS columns
    FROM c GROUP BY oid, relname
)
SELECT E'    tables:\n' || string_agg(format(E'      - name: %s\n        description: %s\n        columns:\n%s', relname, to_json(obj_description(oid)), columns), E'\n' ORDER BY relname) FROM one`

// all returns what read makes of each item of a list.
func all[K, T any](t *testing.T, list iter.Seq2[K, error], read func(K) (T, error)) (records []T) {
	t.Helper()
	for key, err := range list {
		if err != nil {
			t.Fatal(err)
		}
		record, err := read(key)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	return records
}
