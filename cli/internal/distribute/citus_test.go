package distribute_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/auth"
	"github.com/lectern-dev/lectern/shared/auth/pgkeys"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/service"
	"github.com/lectern-dev/lectern/shared/testing/authtest"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/needs"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
	"github.com/lectern-dev/lectern/shared/testing/redistest"
	"github.com/lectern-dev/lectern/shared/testing/servicetest"

	entries "github.com/lectern-dev/lectern/services/entries/app"

	"github.com/lectern-dev/lectern/cli/internal/distribute"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestCitusInPlace moves a database to a cluster, back, and to the cluster again, while a service reads from it. No
// request may fail, and every answer must be unchanged.
func TestCitusInPlace(t *testing.T) { inPlace(t, pgtest.NeedCitus(t), 20_000) }

// TestLongCitusInPlace is TestCitusInPlace with more entries, on its own cluster.
func TestLongCitusInPlace(t *testing.T) {
	needs.Long(t)
	inPlace(t, pgtest.NewCluster(t, 2).Instance, 200_000)
}

// TestCitusKeysInPlace moves the database of keys to a cluster and back while a service looks up keys.
func TestCitusKeysInPlace(t *testing.T) {
	server := pgtest.NeedCitus(t)
	db := server.PlainDatabase(t, pgkeys.Schema())
	keys := authtest.On(t, db, config.ServerURL{})
	key := keys.Key("p")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	d := &distribute.Database{
		URL: config.NewSecret(server.Superuser(db)), Coordinator: server.Member(0), Workers: []string{server.Member(1), server.Member(2)},
		Say: t.Logf,
	}
	pool := pgtest.Pool(t, db.ReaderURL, pgdb.Options{})
	found := func(when string) {
		t.Helper()
		if _, err := pgkeys.NewStore(pool).Lookup(ctx, "p", auth.HashKey(key)); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	if err := d.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	found("prepared")
	exec(t, db.OwnerURL, `CREATE TABLE odd (project_id text, id text UNIQUE, PRIMARY KEY (project_id, id))`)
	if _, err := d.Distribute(ctx); err == nil {
		t.Fatal("a table with a constraint over all projects is distributed")
	}
	found("not distributed")
	exec(t, db.OwnerURL, `DROP TABLE odd`)
	if _, err := d.Distribute(ctx); err != nil {
		t.Fatal(err)
	}
	found("distributed")
	if _, err := d.Undo(ctx); err != nil {
		t.Fatal(err)
	}
	found("undone")
}

func inPlace(t *testing.T, server *pgtest.Instance, n int) {
	// The service itself creates the tables, as on one machine.
	empty := migrate.Schema{Name: "entries", Migrations: fs.FS(fstest.MapFS{
		"0001_nothing.sql": {Data: []byte("-- +goose Up\nDROP TABLE IF EXISTS nothing;\n")},
	})}
	redis := redistest.Start(t)
	b := &servicetest.Backing{DB: server.PlainDatabase(t, empty), Redis: redis, Keys: authtest.New(t, redis.URL)}
	exec(t, b.DB.OwnerURL, `DROP TABLE entries_migrations`)
	s := servicetest.Start(t, b, entries.Run, func(c *entries.Config) *service.Config { return &c.Config },
		map[string]string{"MIGRATE_ON_START": "true"})
	exec(t, b.DB.OwnerURL, fmt.Sprintf(`
		INSERT INTO entries
		SELECT 'pr_' || i %% 50, 'en_' || i, 'gr_1', 'emb_1', 'co_1', '2022-01-01Z'::timestamptz + i * interval '1 s',
		       '2022-01-01Z'::timestamptz + i * interval '1 s', '{"n":' || i || ',"text":"' || repeat('x', 200) || '"}', i
		FROM generate_series(1, %d) i`, n))
	exec(t, b.DB.OwnerURL, fmt.Sprintf(`
		INSERT INTO events (project_id, event_key, entry_id, contact_id, group_id, embeddable_id, "timestamp",
		                    page_id, page_key, page_index, event_type, view_type, seq)
		SELECT 'pr_' || i %% 50, decode(md5(i::text), 'hex'), 'en_' || i, 'co_1', 'gr_1', 'emb_1',
		       '2022-01-01Z'::timestamptz + i * interval '1 s', 'pg_1', 'page-1', 1, 'flowpage.viewed', 'flowpage', 1000000 + i
		FROM generate_series(1, %d) i`, n))
	exec(t, b.DB.OwnerURL, `ANALYZE`)

	const project = "pr_7"
	load := faulttest.Start(t, s.URL, faulttest.LoadOptions{Key: b.Keys.Key(project), Paths: []string{
		"/projects/pr_7/entries", "/projects/pr_7/entries?limit=1000&direction=ASC", "/projects/pr_7/entries/en_57",
		"/projects/pr_7/entries/en_57/events", "/projects/pr_7/entries-page-views?limit=50",
	}})
	d := &distribute.Database{
		URL: config.NewSecret(server.Superuser(b.DB)), Coordinator: server.Member(0), Workers: []string{server.Member(1), server.Member(2)},
		Say: t.Logf,
	}
	step := func(name string, do func() ([]distribute.Table, error)) {
		t.Helper()
		begin := time.Now()
		tables, err := do()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		rows := map[string]int64{}
		for _, table := range tables {
			rows[table.Name] = table.Rows
		}
		want := map[string]int64{"entries": int64(n), "events": int64(n), "progress": 0, "project_changes": 0, "lost_numbers": 0, "removals": 0}
		if name != "prepare" && !maps.Equal(rows, want) {
			t.Errorf("%s: the tables have %v rows, want %v", name, rows, want)
		}
		t.Logf("%s took %v", name, time.Since(begin))
		load.Await(50)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	prepare := func() ([]distribute.Table, error) { return nil, d.Prepare(ctx) }
	step("prepare", prepare)
	step("prepare", prepare) // a repetition changes nothing
	step("distribute", func() ([]distribute.Table, error) { return d.Distribute(ctx) })
	if got := shards(t, server.Superuser(b.DB)); got < 2*2 {
		t.Errorf("%d shards", got)
	}
	if n < 100_000 { // undo blocks all requests while it copies a table back
		step("undo", func() ([]distribute.Table, error) { return d.Undo(ctx) })
		step("prepare", prepare)
		step("distribute", func() ([]distribute.Table, error) { return d.Distribute(ctx) })
	}
	if err := d.Finish(ctx); err != nil {
		t.Errorf("finish: %v", err)
	}
	load.Await(50)
	report := load.Stop()
	report.Check(t, "from one machine to a cluster")
	if report.Refused+report.Broken > 0 {
		t.Errorf("requests failed: %v", report)
	}
	// New records are stored.
	in := s.MustIngest(t, "entries", map[string]any{
		"entry_id": "en_new", "group_id": "gr_1", "project_id": project, "embeddable_id": "emb_1", "contact_id": "co_1",
		"created_at": "2023-01-01T00:00:00Z", "updated_at": "2023-01-01T00:00:00Z", "entry_data": "{}",
	})
	if in.Stored != 1 {
		t.Errorf("stored %d", in.Stored)
	}
}

func exec(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func shards(t *testing.T, url string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_dist_shard`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
