package citus_test

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/apierr"
	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/citus"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/postgres/standbys"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/faulttest"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// open opens a pool as a service does.
func open(t *testing.T, url string, o pgdb.Options) *pgdb.Pool {
	t.Helper()
	o.Attach = citus.Attach
	return pgtest.Pool(t, url, o)
}

func isUnavailable(err error) bool {
	return err != nil && apierr.From(err).Code() == apierr.Unavailable
}

// shelves returns a schema with a distributed table.
func shelves() migrate.Schema {
	return migrate.Schema{
		Name: "shelves",
		Migrations: fstest.MapFS{"0001_shelves.sql": {Data: []byte(`-- +goose Up
CREATE TABLE shelves (project_id text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, body text, PRIMARY KEY (project_id, id));
-- +goose StatementBegin
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        PERFORM create_distributed_table('shelves', 'project_id', colocate_with => 'none');
    END IF;
END $$;
-- +goose StatementEnd
`)}},
		Grants: map[migrate.Role][]string{
			migrate.Reader: {"SELECT ON shelves"},
			migrate.Ingest: {"SELECT, INSERT, UPDATE ON shelves"},
		},
	}
}

// broken is a database whose second worker is behind a proxy.
type broken struct {
	server  *pgtest.Instance
	db      pgtest.DB
	proxy   *faulttest.Proxy
	healthy []string // projects on other workers
	failing []string // projects on the second worker
}

func breakable(t *testing.T) *broken {
	t.Helper()
	b := &broken{server: pgtest.NeedCitus(t)}
	b.db = b.server.Database(t, shelves())
	b.server.Through(t, b.db, 2, func(target string) string {
		b.proxy = faulttest.NewProxy(t, target)
		return b.proxy.Addr()
	})
	conn, err := pgx.Connect(t.Context(), b.server.Superuser(b.db))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for i := range 64 {
		project := fmt.Sprintf("pr_%d", i)
		var addr string
		err := conn.QueryRow(t.Context(), `
			SELECT n.nodename || ':' || n.nodeport FROM pg_dist_placement p JOIN pg_dist_node n USING (groupid)
			WHERE p.shardid = get_shard_id_for_distribution_column('shelves', $1::text)`, project).Scan(&addr)
		if err != nil {
			t.Fatal(err)
		}
		if addr == b.proxy.Addr() {
			b.failing = append(b.failing, project)
		} else {
			b.healthy = append(b.healthy, project)
		}
		if _, err := conn.Exec(t.Context(), `INSERT INTO shelves VALUES ($1, 'a', 'body')`, project); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.failing) < 8 || len(b.healthy) < 8 {
		t.Fatalf("%d projects on one side and %d on the other", len(b.failing), len(b.healthy))
	}
	return b
}

// distributed checks that the pool knows after its first connection that tables are distributed.
func distributed(t *testing.T, p *pgdb.Pool) {
	t.Helper()
	if err := p.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !p.Distributed() {
		t.Fatal("the pool does not know that tables are distributed")
	}
}

// at returns the URL of with the address addr.
func at(t *testing.T, of, addr string) string {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = addr
	return u.String()
}

func hostPort(t *testing.T, of string) string {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

const readShelf = `SELECT body FROM shelves WHERE project_id = $1 AND id = $2`

// TestPlainPostgres checks that a pool of plain Postgres is not distributed.
func TestPlainPostgres(t *testing.T) {
	db := pgtest.Server(t)
	if db.Citus() {
		t.Skip("the server is a Citus coordinator")
	}
	p := open(t, db.Database(t, shelves()).ReaderURL, pgdb.Options{MaxConns: 1})
	if err := p.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.Distributed() {
		t.Error("the pool takes it for a Citus cluster")
	}
}

// TestCitusDoubtfulCommit checks that a write counts as not acknowledged if Citus acknowledged it but it is not
// visible. Citus commits such a statement in two phases, and the worker is lost between them.
func TestCitusDoubtfulCommit(t *testing.T) {
	b := breakable(t)
	const twoPhases = `INSERT INTO shelves (project_id, id, body) SELECT $1, u, $3 FROM unnest($2::text[]) u`
	write := func(p *pgdb.Pool, id string) error {
		_, err := p.Exec(context.Background(), twoPhases, b.failing[0], []string{id}, "late")
		return err
	}
	p := open(t, b.db.IngestURL, pgdb.Options{MaxConns: 1}) // one session, which loses its connection to the worker and opens it again
	distributed(t, p)
	b.proxy.RefuseAt("COMMIT PREPARED")
	// This connection ignores warnings, so it gets Citus' acknowledgement.
	conn := pgtest.Connect(t, b.db.IngestURL)
	if _, err := conn.Exec(t.Context(), twoPhases, b.failing[0], []string{"w2"}, "late"); err != nil || !b.proxy.Refuses() {
		t.Fatalf("the commit did not fail as expected: %v, worker lost: %v", err, b.proxy.Refuses())
	}
	b.proxy.Heal()
	eventually.Succeeds(t, "a write when the worker is back", func() error { return write(p, "w1") })
	b.proxy.RefuseAt("COMMIT PREPARED")
	if err := write(p, "w3"); !isUnavailable(err) {
		t.Errorf("a write that is not visible: %v", err)
	}
	if !b.proxy.Refuses() {
		t.Error("the worker was not lost")
	}
	b.proxy.Heal()
	admin := pgtest.Connect(t, b.server.Superuser(b.db))
	if _, err := admin.Exec(t.Context(), `SELECT recover_prepared_transactions()`); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := p.QueryRow(t.Context(), []any{&n}, `SELECT count(*) FROM shelves WHERE project_id = $1 AND body = 'late'`, b.failing[0]); err != nil || n != 3 {
		t.Errorf("%d of 3 rows in the end, %v", n, err)
	}
}

// TestCitusNodesAsReaders checks that any node can serve reads. An unreachable node is left out, and used again when it
// is back. A failing worker does not make other nodes unusable.
func TestCitusNodesAsReaders(t *testing.T) {
	b := breakable(t)
	node := faulttest.NewProxy(t, hostPort(t, b.server.OnWorker(b.db.ReaderURL, 1)))
	primary := open(t, b.db.ReaderURL, pgdb.Options{MaxConns: 4})
	distributed(t, primary)
	reads, err := standbys.Open(t.Context(), primary, standbys.Options{
		Standbys: []config.ServerURL{config.NewServerURL(at(t, b.db.ReaderURL, node.Addr()) + "&connect_timeout=1"), config.NewServerURL(b.db.ReaderURL)},
		Pool:     pgdb.Options{MaxConns: 4, Attach: citus.Attach},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reads.Close)
	serving := func(want int) {
		t.Helper()
		eventually.Succeeds(t, "the nodes that are read from", func() error {
			if _, n := reads.Standbys(); n != want {
				return fmt.Errorf("%d, want %d", n, want)
			}
			return nil
		})
	}
	serving(2)
	var good atomic.Int64
	all := func(projects []string) {
		t.Helper()
		for i := range 40 {
			err := reads.Query(t.Context(), func(rows pgx.Rows) error {
				for rows.Next() {
					good.Add(1)
				}
				return nil
			}, readShelf, projects[i%len(projects)], "a")
			if err != nil {
				t.Errorf("read: %v", err)
			}
		}
	}
	all(b.healthy)
	all(b.failing)
	if good.Load() != 80 {
		t.Errorf("%d of 80 rows", good.Load())
	}
	node.Refuse()
	all(b.healthy)
	serving(1)
	node.Heal()
	serving(2)
	b.proxy.Refuse()
	all(b.healthy)
	if err := reads.Query(t.Context(), func(pgx.Rows) error { return nil }, readShelf, b.failing[0], "a"); !isUnavailable(err) {
		t.Errorf("a project whose worker is down: %v", err)
	}
	if _, n := reads.Standbys(); n != 2 {
		t.Errorf("a worker that is down left %d of 2 nodes", n)
	}
}
