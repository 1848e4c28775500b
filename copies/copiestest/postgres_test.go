// Package copiestest tests copies in Postgres, in a module of its own. So the module copies does not depend on the packages
// that start a Postgres for tests.
package copiestest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
	"github.com/lectern-dev/lectern/copies/internal/copytest"
	"github.com/lectern-dev/lectern/copies/postgres"
	"github.com/lectern-dev/lectern/copies/push"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/golden"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestPostgres(t *testing.T) {
	copytest.Run(t, func(t *testing.T) copytest.Kind { return newDatabase(t) })
}

// database is a database for a copy.
type database struct {
	url string
	sql *pgx.Conn
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	empty := migrate.Schema{Name: "warehouse", Migrations: fstest.MapFS{"0001_nothing.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")}}}
	db := pgtest.Database(t, empty)
	conn, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	d := &database{db.OwnerURL, conn}
	d.exec(t, `SET TIME ZONE 'UTC'`)
	return d
}

func (d *database) options(from copies.Source) postgres.Options {
	return postgres.Options{URL: d.url, Schema: "Copy of shop", Source: from, Columns: columns.Choice{All: true}, LockWait: 5 * time.Minute}
}

// Open returns the copy. A copy whose context ends loses its connection.
func (d *database) Open(_ *testing.T, o copytest.Options) (copies.Destination, error) {
	options := d.options(o.Source)
	options.Moved, options.Mask = o.Moved, o.Mask
	to, err := postgres.New(options)
	return copytest.CutContext(to, o.Cut), err
}

// Exact reports that entry_data is jsonb.
func (d *database) Exact() bool { return false }

// Text returns a dump of the database.
func (d *database) Text(t *testing.T) string {
	t.Helper()
	return pgtest.Client(t, "pg_dump", d.url)
}

// in is the schema of the copy.
const in = `"Copy of shop".`

// Read reads the copy's current rows by SQL alone.
func (d *database) Read(t *testing.T) copytest.Tables {
	t.Helper()
	all := copytest.NewTables()
	for table := range all {
		current := ""
		if table == "entries" || table == "events" {
			current = " WHERE removed_at IS NULL"
		}
		found, err := d.sql.Query(t.Context(), `SELECT (j - '{entry_data, entry_data_text, entry_columns, removed_at, removal_reason}'::text[])::text,
			coalesce(j ->> 'entry_data_text', (j -> 'entry_data')::text) FROM (SELECT to_jsonb(t) AS j FROM `+in+table+` AS t`+current+`) AS t`)
		if err != nil {
			t.Fatal(err)
		}
		var rest string
		var data *string
		if _, err := pgx.ForEachRow(found, []any{&rest, &data}, func() error {
			more := copytest.Row{}
			if data != nil {
				more["entry_data"] = *data
			}
			all.Add(t, table, json.RawMessage(rest), more)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Injuries returns changes of rows by SQL.
func (d *database) Injuries(*testing.T) [][]copytest.Injury {
	injury := func(sql string, want ...string) copytest.Injury {
		return copytest.Injury{Name: sql, Do: func(t *testing.T) []string {
			d.exec(t, sql)
			return want
		}}
	}
	swap := func(from, to string) string {
		return `UPDATE ` + in + `lectern_columns SET embeddable_id = '` + to + `' WHERE embeddable_id = '` + from + `';`
	}
	var rows []copytest.Injury
	for _, kind := range []struct {
		name, table, column string
		key                 func(n int) string
		content             []string
	}{
		{"entry", "entries", "entry_id", func(n int) string { return fmt.Sprint("en_", n) }, []string{
			`entry_data = '{"other":1}'`, `contact_id = 'other'`, `updated_at = '-infinity'`, `updated_at = updated_at + interval '1 us'`, `entry_data = NULL`, `seq = seq - 1`,
			`entry_data_text = 'x', entry_data = NULL`, `entry_data_text = ''`, `entry_columns = '{"n": 99}'`, `removal_reason = 'x'`,
		}},
		{"event", "events", "event_key", func(n int) string { return fmt.Sprintf("en_%d/%d", n, 2*n) }, []string{
			`url = NULL`, `page_index = page_index + 1`, `"timestamp" = now()`, `"timestamp" = '0044-03-15 BC'`, `entry_id = 'other'`, `seq = seq + 1000000000000`, `removal_reason = 'x'`,
		}},
	} {
		where := func(n int) string { return ` WHERE ` + kind.column + ` = '` + kind.key(n) + `'` }
		copied := func(id, project string) string {
			return `CREATE TEMP TABLE one AS SELECT * FROM ` + in + kind.table + where(20) + `; UPDATE one SET project_id = '` + project + `', ` + kind.column + ` = '` + id + `';
				INSERT INTO ` + in + kind.table + ` SELECT * FROM one; DROP TABLE one`
		}
		rows = append(rows, injury(`DELETE FROM `+in+kind.table+where(21), "missing "+kind.name+" "+kind.key(21)),
			injury(`UPDATE `+in+kind.table+` SET removed_at = now()`+where(22), "missing "+kind.name+" "+kind.key(22)),
			injury(copied("extra", "pr_1"), "extra "+kind.name+" extra"), injury(copied("foreign", "pr_2"), "foreign "+kind.name+" foreign"))
		for n, set := range kind.content {
			rows = append(rows, injury(`UPDATE `+in+kind.table+` SET `+set+where(n), "stale "+kind.name+" "+kind.key(n)))
		}
	}
	return [][]copytest.Injury{append(rows,
		injury(`UPDATE `+in+`entries SET entry_columns = NULL WHERE entry_id = 'misfit'`, "stale entry misfit"),
		injury(`UPDATE `+in+`entries SET removal_reason = 'x' WHERE entry_id = 'odd'`, "stale entry odd"),
		injury(`UPDATE `+in+`embeddables SET definition = 'x'`, "stale embeddable emb_1"),
		injury(`INSERT INTO `+in+`embeddables VALUES ('emb_9', '', '', '', '')`, "extra embeddable emb_9"),
		injury(`DELETE FROM `+in+`embeddable_versions WHERE version_number = 2`, "missing embeddable_version emb_1/2"),
		injury(`UPDATE `+in+`embeddable_versions SET saved_at = 'infinity'`, "stale embeddable_version emb_1/1"),
		injury(`UPDATE `+in+`experiments SET no_impact_metrics = NULL`, "stale experiment exp_emb_1"),
		injury(`UPDATE `+in+`experiment_history SET status = NULL`, "stale experiment_status exp_emb_1/1"),
	), {
		injury(`DELETE FROM `+in+`embeddables`, "missing embeddable emb_1"),
		injury(`DELETE FROM `+in+`experiment_history`, "missing experiment_status exp_emb_1/1"),
		injury(`UPDATE `+in+`experiments SET hypothesis = ''`, "stale experiment exp_emb_1"),
	}, {
		injury(`DROP INDEX `+in+`entries_by_seq; CREATE INDEX entries_by_seq ON `+in+`entries (created_at)`, "stale index entries_by_seq"),
		injury(`DROP INDEX `+in+`events_by_entry`, "missing index events_by_entry"),
		injury(`ALTER TABLE `+in+`entries DROP CONSTRAINT entries_pkey`, "missing index entries_pkey"),
		injury(`ALTER TABLE `+in+`experiments DROP CONSTRAINT experiments_pkey`, "missing index experiments_pkey"),
		injury(narrowed("entries_of_emb_1"), "stale view entries_of_emb_1"),
		injury(narrowed("page_views"), "stale view page_views"),
		injury(`DROP VIEW `+in+`entries_of_emb_2; CREATE VIEW `+in+`entries_of_emb_2 AS SELECT entry_id, 1::float8 AS b, 2 AS c FROM `+in+`entries`, "stale view entries_of_emb_2"),
	}, {
		injury(`UPDATE `+in+`lectern_columns SET type = 'double' WHERE embeddable_id = 'emb_1' AND key = 'text'`, "stale column emb_1/text"),
		injury(`UPDATE `+in+`lectern_columns SET type = 'text' WHERE embeddable_id = 'emb_1' AND key = 'n'`, "stale column emb_1/n"),
	}, {
		injury(`DELETE FROM `+in+`lectern_columns WHERE key = 'text'; UPDATE `+in+`lectern_columns SET position = position + 10`, "stale entry en_0", "stale view entries_of_emb_1"),
	}, {
		injury(swap("emb_1", "x")+swap("emb_2", "emb_1")+swap("x", "emb_2"),
			"stale column emb_1/b", "stale column emb_2/b", "stale entry en_0", "stale entry en_28", "stale entry odd", "stale view entries_of_emb_1"),
	}}
}

// Aside returns the records of the table lectern_lost.
func (d *database) Aside(t *testing.T) []string {
	t.Helper()
	if d.value(t, `SELECT (to_regclass('`+in+`lectern_lost') IS NULL)::text`) == "true" {
		return nil
	}
	rows, err := d.sql.Query(t.Context(), `SELECT record FROM `+in+`lectern_lost`)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// narrowed returns SQL that takes rows out of a view.
func narrowed(view string) string {
	return `DO $$ BEGIN EXECUTE 'CREATE OR REPLACE VIEW ` + in + view + ` AS ' || replace(pg_get_viewdef('` + in + view + `'::regclass), 'removed_at IS NULL', 'removed_at IS NULL AND seq > 5'); END $$`
}

// warehouse is a copy in a database, and its source.
type warehouse struct {
	*database
	*copytest.Source
}

func newWarehouse(t *testing.T) *warehouse {
	t.Helper()
	return &warehouse{newDatabase(t), copytest.NewSource(t)}
}

func (w *warehouse) options() postgres.Options { return w.database.options(w.Is()) }

func (w *warehouse) open(t *testing.T, o postgres.Options) *postgres.Destination {
	t.Helper()
	d, err := postgres.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// sync copies until the copy is current.
func (w *warehouse) sync(t *testing.T, o postgres.Options) error {
	t.Helper()
	_, err := w.Sync(t.Context(), copytest.Small(w.open(t, o)), func(o *copies.Options) { o.Attempts = 20 })
	return err
}

func (w *warehouse) mustSync(t *testing.T, o postgres.Options) {
	t.Helper()
	if err := w.sync(t, o); err != nil {
		t.Fatal(err)
	}
}

func (w *warehouse) check(t *testing.T) {
	t.Helper()
	copytest.Equal(t, w.Tables(t), w.Read(t), false)
}

func (d *database) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := d.sql.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (d *database) value(t *testing.T, sql string) (text string) {
	t.Helper()
	if err := d.sql.QueryRow(t.Context(), sql).Scan(&text); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return text
}

// TestPostgresIndexes checks which indexes a copy has, and how many entries have data that jsonb refuses.
func TestPostgresIndexes(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	for i, data := range copytest.Hostile {
		w.Put(copytest.Entry(fmt.Sprint("odd_", i), i, data))
	}
	d := w.open(t, w.options())
	if _, err := w.Sync(t.Context(), d, nil); err != nil || len(d.Remarks()) != 1 || !strings.HasPrefix(d.Remarks()[0], "3 entries have data that jsonb cannot hold") {
		t.Errorf("%v, %q; want 3 entries as text", err, d.Remarks())
	}
	const indexes = `SELECT string_agg(indexname, ' ' ORDER BY indexname COLLATE "C") FROM pg_indexes WHERE tablename IN ('entries', 'events')`
	if got := w.value(t, indexes); got != "entries_by_embeddable entries_by_seq entries_pkey events_by_entry events_by_seq events_pkey" {
		t.Errorf("the indexes are %s", got)
	}
	w.exec(t, `ALTER TABLE "Copy of shop".entries DROP CONSTRAINT entries_pkey; INSERT INTO "Copy of shop".entries SELECT * FROM "Copy of shop".entries WHERE entry_id = 'odd_1'`)
	if names, left := w.Verify(t, d, nil); left != 2 || names[0] != "doubled entry odd_1" || names[1] != "missing index entries_pkey" {
		t.Errorf("without the key: %q", names)
	}
	w.Put(copytest.Entry("odd_1", 900, `{}`))
	if err := w.sync(t, w.options()); err == nil || !strings.Contains(err.Error(), "lacks its primary key") || !strings.Contains(err.Error(), "--verify --repair") {
		t.Errorf("a run without the key: %v", err)
	}
}

// terminated is a copy that loses its connection at each batch but the last.
type terminated struct {
	*postgres.Destination
	w *warehouse
	t *testing.T
	n *int
}

func (d terminated) Apply(ctx context.Context, b *copies.Batch) error {
	if *d.n++; *d.n%2 == 1 {
		d.w.exec(d.t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lectern sync' AND datname = current_database()`)
	}
	return d.Destination.Apply(ctx, b)
}

// TestPostgresConnectionKilled checks that a run continues with a new connection after the loss of its connection.
func TestPostgresConnectionKilled(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.Fill(0, 20)
	n := 0
	if _, err := w.Sync(t.Context(), copytest.Small(terminated{w.open(t, w.options()), w, t, &n}), func(o *copies.Options) { o.Attempts = 2 }); err != nil || n < 6 {
		t.Errorf("%v after %d batches", err, n)
	}
	w.check(t)
}

func TestPostgresSoftDelete(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	o := w.options()
	o.SoftDelete = true
	w.Fill(0, 4)
	w.mustSync(t, o)
	w.Remove(client.Erased, "en_3")
	w.Remove(client.Purged, "en_1", "en_2")
	w.mustSync(t, o)
	w.check(t)
	const marked = `SELECT string_agg(entry_id || ' ' || removal_reason, ',' ORDER BY entry_id, seq) FROM "Copy of shop".`
	if e, v := w.value(t, marked+"entries"), w.value(t, marked+"events"); e != "en_1 purged,en_2 purged" || v != "en_1 purged,en_1 purged,en_2 purged,en_2 purged" {
		t.Errorf("marked are entries %q and events %q", e, v)
	}
	w.Put(copytest.Entry("en_2", 900, `{"back":1}`))
	w.Put(copytest.Event("en_2", 4)) // one of the two that were removed
	w.mustSync(t, o)
	w.check(t)
	if e, v := w.value(t, marked+"entries"), w.value(t, marked+"events"); e != "en_1 purged" || v != "en_1 purged,en_1 purged,en_2 purged" {
		t.Errorf("marked are entries %q and events %q", e, v)
	}
	o.SoftDelete = false
	if err := w.sync(t, o); err == nil || !strings.Contains(err.Error(), "give --soft-delete as before") {
		t.Errorf("without --soft-delete: %v", err)
	}
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
	w.Fill(0, 5)
	o := w.options()
	var notes []string
	o.Note = func(text string) { notes = append(notes, text) }
	first := waiting{w.open(t, o), make(chan struct{}), make(chan struct{})}
	done := make(chan error)
	go func() {
		_, err := w.Sync(t.Context(), first, nil)
		done <- err
	}()
	<-first.opened
	impatient := w.options()
	impatient.LockWait = 50 * time.Millisecond
	err := w.sync(t, impatient)
	if err == nil || !strings.Contains(err.Error(), "another sync writes to the schema Copy of shop") || !strings.Contains(err.Error(), "Postgres process") {
		t.Errorf("the second: %v", err)
	}
	// A receiver's state is another thing, also in the same schema.
	state, err := push.New(push.Options{URL: "http://localhost", Secret: push.Secret(make([]byte, 24)), Source: w.Is(), State: w.url, Schema: "Copy of shop"})
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
	w.Put(copytest.Entry("en_1", 900, `{"again":true}`))
	w.mustSync(t, w.options())
	w.check(t)
	if got := w.value(t, keys); got != "events_pkey entries_pkey" && got != "entries_pkey events_pkey" {
		t.Errorf("the next run makes the keys %s", got)
	}
}

// pooled returns the database's URL through a PgBouncer that gives out server processes by mode: transaction or session.
func (d *database) pooled(t *testing.T, mode string) string {
	t.Helper()
	binary, err := exec.LookPath("pgbouncer")
	if err != nil {
		binary = "/usr/sbin/pgbouncer"
	}
	server, err := pgx.ParseConfig(d.url)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "pgbouncer") // the folder around that of t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	file := filepath.Join(folder, "pgbouncer.ini")
	settings := fmt.Sprintf("[databases]\n* = host=%s port=%d user=%s password=%s\n[pgbouncer]\nunix_socket_dir = %s\nauth_type = any\npool_mode = %s\n",
		server.Host, server.Port, server.User, server.Password, folder, mode)
	if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"--quiet", file}
	if os.Geteuid() == 0 { // PgBouncer does not run as root, and the server's folder is open to its user alone
		info, err := os.Stat(server.Host)
		if err != nil {
			t.Fatal(err)
		}
		owner, err := user.LookupId(fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid))
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--user", owner.Username)
		if err := os.Chmod(folder, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	var said strings.Builder
	pooler := exec.CommandContext(t.Context(), binary, args...)
	pooler.Stderr = &said
	if err := pooler.Start(); err != nil {
		t.Fatalf("%v; scripts/setup pooler installs PgBouncer", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = pooler.Wait()
		close(ended)
	}()
	t.Cleanup(func() { <-ended })
	through := (&url.URL{Scheme: "postgres", Path: "/" + server.Database, RawQuery: url.Values{"host": {folder}, "port": {"6432"}, "user": {"any"}}.Encode()}).String()
	eventually.Succeeds(t, "a connection through PgBouncer", func() error {
		select {
		case <-ended:
			t.Fatalf("PgBouncer ended: %s", &said)
		default:
		}
		conn, err := pgx.Connect(t.Context(), through)
		if err == nil {
			err = conn.Close(t.Context())
		}
		return err
	})
	return through
}

// A copy through a pooler of sessions is like any other. A pooler of transactions is refused before it has the lock or a
// setting of the copy.
func TestPostgresThroughPoolers(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.Fill(0, 30)
	o := w.options()
	o.URL = w.pooled(t, "transaction")
	var pooled *postgres.PooledError
	for range 3 {
		if err := w.sync(t, o); !errors.As(err, &pooled) {
			t.Fatalf("a pooler of transactions: %v", err)
		}
	}
	state, err := push.New(push.Options{URL: "http://localhost", Secret: push.Secret(make([]byte, 24)), Source: w.Is(), State: o.URL, Schema: "push"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.Open(t.Context()); !errors.As(err, &pooled) {
		t.Errorf("a receiver's state behind it: %v", err)
	}
	const left = `SELECT (SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE l.locktype = 'advisory' AND d.datname = current_database()) || ' ' || (SELECT count(*) FROM pg_namespace WHERE nspname = 'Copy of shop')`
	if got := w.value(t, left); got != "0 0" {
		t.Errorf("locks and schemas left: %s", got)
	}
	o.URL = w.pooled(t, "session")
	w.mustSync(t, o)
	w.mustSync(t, w.options())
	w.check(t)
}

func TestPostgresRefusesWhatIsNotItsCopy(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.Fill(0, 3)
	w.mustSync(t, w.options())
	w.exec(t, `CREATE SCHEMA other; CREATE TABLE other.events (a int)`)
	was := w.Read(t)
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
			err := w.sync(t, tt.to)
			if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), tt.says2) || strings.Contains(err.Error(), "secret-1") {
				t.Errorf("%v; want %q and %q", err, tt.says, tt.says2)
			}
			if tt.undo != "" {
				w.exec(t, tt.undo)
			}
		})
	}
	if diff := cmp.Diff(was, w.Read(t)); diff != "" {
		t.Error(diff)
	}
}

// TestPostgresInADatabaseOfOthers checks that a copy stands all that the owner of a database does to its tables and roles, or
// refuses that by name.
func TestPostgresInADatabaseOfOthers(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	role := w.value(t, `SELECT format('%I IN DATABASE %I', current_user, current_database())`)
	w.Define("emb_1", 1, client.Draft, 1)
	// The first load has no keys yet.
	w.Fill(0, 30)
	d := copytest.Small(w.open(t, w.options()))
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
		{"a column list", `CREATE PUBLICATION of_contacts FOR TABLE ` + tables + ` (contact_id)`, `DROP PUBLICATION of_contacts`, "published without the columns of the key"},
		{"row security", `ALTER TABLE ` + tables + ` ENABLE ROW LEVEL SECURITY`, `ALTER TABLE ` + tables + ` DISABLE ROW LEVEL SECURITY`, ``},
		{"row security of owners", `ALTER TABLE ` + tables + ` ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY`, `ALTER TABLE ` + tables + ` DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY`, "row security must not apply"},
		{"settings of the role", `ALTER ROLE ` + role + ` SET statement_timeout = '200ms'; ALTER ROLE ` + role + ` SET search_path = public, pg_temp;
			CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END'; CREATE TRIGGER slow AFTER INSERT ON ` + tables + ` EXECUTE FUNCTION slow()`,
			`ALTER ROLE ` + role + ` RESET ALL; DROP FUNCTION slow CASCADE`, ``},
		{"columns of others", `ALTER TABLE ` + tables + ` ADD plain boolean, ADD n int, ADD data text DEFAULT 'x'`, ``, ``},
		{"a unique index of others", `CREATE UNIQUE INDEX one_each ON ` + tables + ` (group_id, (entry_data ->> 'same'))`, `DROP INDEX "Copy of shop".one_each`, "a unique index that lectern sync did not make"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.exec(t, tt.do)
			w.Fill(10*i, 30)
			other := i + 1000
			if strings.Contains(tt.name, "unique") {
				other = i
			}
			w.Put(copytest.Entry(fmt.Sprintf("same_%d", i), i, fmt.Sprintf(`{"same":%d}`, i)), copytest.Entry(fmt.Sprintf("same_%d_again", i), i, fmt.Sprintf(`{"same":%d}`, other)))
			w.Remove(client.Erased, fmt.Sprintf("en_%d", 10*i))
			w.Define("emb_1", i+2, []client.ExperimentStatus{client.Running, client.Paused}[i%2], i+2)
			var err error
			eventually.True(t, "a session whose own SET is done within the role's limit of 200 ms", func() bool {
				err = w.sync(t, w.options())
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

// Each embeddable has a view with the keys of its entries as columns.
func TestPostgresHasColumns(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	const odd = `o"d'd ` + "\u00fc" // an embeddable
	long := strings.Repeat("long", 30)
	w.Put(copytest.Entry("en_1", 1, `{"n":1.50,"seq":true,"it's":"Zoë","at":"2026-01-02T03:04:05+02:00","none":null}`),
		copytest.Entry("en_2", 1, `{"n":2,"o":{"a":[1]}}`),
		copytest.Entry("refused", 1, `{"n":3,"x":"\u0000"}`),
		copytest.Of(odd, copytest.Entry("en_3", 1, `{"n":"three"}`)),
		copytest.Of(long, copytest.Entry("en_4", 1, `{"n":"four"}`)))
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
		w.Put(copytest.Of(strings.TrimPrefix(names, "entries_of_"), copytest.Entry("en_6", 1, `{"n":"six"}`)))
		w.mustSync(t, w.options())
		read(`n`, `"Copy of shop"."`+names+`"`, `[{"n":"four"}]`)
	}

	// A new column keeps grants; a lost view is made again. A new view may be read by the roles that may read the entries.
	w.exec(t, `GRANT SELECT ON `+view+` TO PUBLIC; GRANT SELECT ON ALL TABLES IN SCHEMA "Copy of shop" TO pg_monitor; DROP VIEW "Copy of shop".page_views, `+oddView)
	w.Put(copytest.Entry("en_2", 2, `{"n":2,"later":true}`))
	w.mustSync(t, w.options())
	read(`n, later`, view+` WHERE later`, `[{"n":2,"later":true}]`)
	read(`n`, oddView, `[{"n":"three"}]`)
	w.exec(t, `SELECT FROM "Copy of shop".page_views`)
	if w.value(t, `SELECT has_table_privilege('pg_monitor', oid, 'SELECT')::text FROM pg_class WHERE relname = 'entries_of_o"d''d ü'`) != "true" {
		t.Error("pg_monitor may not read the view that was made again")
	}
	if granted := w.value(t, `SELECT count(*)::text FROM information_schema.role_table_grants WHERE table_name = 'entries_of_emb_1' AND grantee = 'PUBLIC'`); granted != "1" {
		t.Errorf("%s grants", granted)
	}

	// Somebody's change of a type does not change the view.
	w.exec(t, `UPDATE "Copy of shop".lectern_columns SET type = 'text' WHERE key = 'at'`)
	w.Put(copytest.Entry("en_5", 2, `{"at":"tomorrow"}`))
	w.mustSync(t, w.options())
	read(`at`, view+` WHERE entry_id = 'en_5'`, `[{"at":null}]`)

	other := w.options()
	other.Columns = columns.Choice{}
	if err := w.sync(t, other); err == nil || !strings.Contains(err.Error(), `has a copy with --columns "auto", not "none"`) {
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
	w.Put(copytest.Entry("en_1", 1, `{"age":30,"ok":true,"at":"2026-01-02T03:04:05Z","text":{"b":[1 ,1e2]}}`))
	w.mustSync(t, o)
	const view = `"Copy of shop".entries_of_emb_1`
	w.exec(t, `SET TIME ZONE 'UTC'; CREATE VIEW "Copy of shop".report AS SELECT sum(age) AS years FROM `+view+`; CREATE TABLE "Copy of shop".entries_of_taken (a int)`)
	odd := []string{`"n/a"`, `1e400`, `-1e-400`, `9007199254740993`, `0.1000000000000000055`, `"2026-02-30T00:00:00Z"`, `"\u0000"`, `"\ud800"`, `[]`, `{"a":"\ud800"}`, `true`, `null`, `1e1000`, `1e200000`}
	for i, value := range odd {
		w.Put(copytest.Entry(fmt.Sprintf("odd_%d", i), i, fmt.Sprintf(`{"age":%s,"ok":%[1]s,"at":%[1]s,"text":%[1]s}`, value)))
	}
	w.Put(copytest.Of("taken", copytest.Entry("en_2", 1, `{"a":1}`)))
	// A query holds the view, so that it cannot get a column.
	reader, err := w.sql.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), `SELECT FROM `+view); err != nil {
		t.Fatal(err)
	}
	w.Put(copytest.Entry("en_3", 1, `{"age":12,"later":"x"}`))
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
	for e, err := range w.Client.Entries(t.Context(), copytest.Project, client.EntryQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.EmbeddableID != "emb_1" {
			continue
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

// TestPostgresDictionary checks the dictionary of a copy, which dbt can read, and its view of page views.
func TestPostgresDictionary(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.Fill(0, 3)
	w.mustSync(t, w.options())
	if n := w.value(t, `SELECT count(*)::text FROM "Copy of shop".page_views WHERE page_key = 'page-1'`); n != "6" {
		t.Errorf("%s page views, want 6", n)
	}
	const path = "../../docs/reference/copies-dbt.yml"
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
