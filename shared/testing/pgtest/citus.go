package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lectern-dev/lectern/shared/postgres/migrate"
)

// testShards is the number of shards of a table in a test's database. Every worker has several, and copies are fast.
const testShards = 8

// Citus reports whether databases are distributed, because the server is the coordinator of a Citus cluster.
func (i *Instance) Citus() bool { return len(i.members) > 0 }

// NeedCitus skips t unless the test binary's server is the coordinator of a Citus cluster.
func NeedCitus(t testing.TB) *Instance {
	t.Helper()
	i := Server(t)
	if !i.Citus() {
		t.Skip("pgtest: needs TEST_DATABASE_URL to name the coordinator of a Citus cluster")
	}
	return i
}

// Through makes all nodes connect to a worker, numbered from 1, through a proxy, only in db. addr receives the worker's
// host and port, and returns the proxy's.
func (i *Instance) Through(t testing.TB, db DB, worker int, addr func(target string) string) {
	t.Helper()
	if worker < 1 || worker >= len(i.members) {
		t.Fatalf("pgtest: worker %d of %d", worker, len(i.members)-1)
	}
	host, port, err := net.SplitHostPort(addr(i.members[worker].addr()))
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	m := i.members[worker]
	err = i.each(ctx, db.Name, func(conn *pgx.Conn) error {
		// Do not use citus_update_node, because it connects to the nodes.
		_, err := conn.Exec(ctx, `UPDATE pg_dist_node SET nodename = $1, nodeport = $2 WHERE nodename = $3 AND nodeport = $4`,
			host, number, m.host, m.port)
		return err
	})
	if err != nil {
		t.Fatalf("pgtest: move worker %d: %v", worker, err)
	}
}

// PlainDatabase returns a database of t's own like [Instance.Database], but only on the coordinator and without
// Citus.
func (i *Instance) PlainDatabase(t testing.TB, s migrate.Schema) DB {
	t.Helper()
	alone := &Instance{admin: i.admin, templates: map[string]string{}, prefix: "plain_", disposable: true}
	var name string
	t.Cleanup(func() { // on every node, because the test may have distributed it
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		if name == "" || i.disposable {
			return
		}
		if err := i.drop(ctx, name); err != nil {
			t.Errorf("pgtest: drop %s: %v", name, err)
		}
	})
	db := alone.Database(t, s)
	name = db.Name
	return db
}

// Member returns the host and port of worker n. Worker 0 is the coordinator.
func (i *Instance) Member(n int) string { return i.members[n].addr() }

// AdminURL returns the superuser's URL of the server.
func (i *Instance) AdminURL() string { return i.admin }

// Superuser returns the superuser's URL of db.
func (i *Instance) Superuser(db DB) string {
	u, err := url.Parse(i.admin)
	if err != nil {
		return ""
	}
	u.Path = "/" + db.Name
	return u.String()
}

// OnWorker returns the URL of with a worker, numbered from 1, instead of the coordinator.
func (i *Instance) OnWorker(of string, worker int) string {
	u, err := url.Parse(of)
	if err != nil {
		return ""
	}
	u.Host = i.members[worker].addr()
	return u.String()
}

// member is a node of a Citus cluster; the first is the coordinator.
type member struct {
	host string
	port int
}

func (m member) addr() string { return net.JoinHostPort(m.host, strconv.Itoa(m.port)) }

// given returns an Instance for an existing server at url.
func given(url string) (*Instance, error) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	i := &Instance{admin: url, templates: map[string]string{}}
	err := i.discover(ctx)
	return i, err
}

// discover finds the nodes of the cluster, if the server is a coordinator.
func (i *Instance) discover(ctx context.Context) error {
	return i.connect(ctx, "", func(conn *pgx.Conn) error {
		var there bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')`).Scan(&there)
		if err != nil || !there {
			return err
		}
		rows, err := conn.Query(ctx, `SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid`)
		if err != nil {
			return err
		}
		i.members, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m member, err error) {
			err = row.Scan(&m.host, &m.port)
			return m, err
		})
		if err == nil && len(i.members) < 2 {
			err = errors.New("the Citus cluster has no worker, or its coordinator is not registered")
		}
		return err
	})
}

// each runs do with a superuser's connection to the database db of every node, concurrently.
func (i *Instance) each(ctx context.Context, db string, do func(*pgx.Conn) error) error {
	if !i.Citus() {
		return i.connect(ctx, "", do)
	}
	faults := make([]error, len(i.members))
	var running sync.WaitGroup
	for n, m := range i.members {
		running.Go(func() {
			faults[n] = i.connectTo(ctx, m, db, do)
		})
	}
	running.Wait()
	return errors.Join(faults...)
}

func (i *Instance) connectTo(ctx context.Context, m member, db string, do func(*pgx.Conn) error) error {
	u, err := url.Parse(i.admin)
	if err != nil {
		return err
	}
	u.Host, u.Path = m.addr(), "/"+db
	conn, err := pgx.Connect(ctx, u.String())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return do(conn)
}

// plainDatabase is a database without Citus. Statements in it affect only their own node.
const plainDatabase = "postgres"

// join makes the databases called name on all nodes a Citus cluster.
func (i *Instance) join(ctx context.Context, name string) error {
	err := i.each(ctx, name, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS citus`)
		return err
	})
	if err != nil {
		return err
	}
	return i.connect(ctx, name, func(conn *pgx.Conn) error {
		first := i.members[0]
		if _, err := conn.Exec(ctx, `SELECT citus_set_coordinator_host($1, $2)`, first.host, first.port); err != nil {
			return err
		}
		for _, m := range i.members[1:] {
			if _, err := conn.Exec(ctx, `SELECT citus_add_node($1, $2)`, m.host, m.port); err != nil {
				return err
			}
		}
		_, err := conn.Exec(ctx, fmt.Sprintf(`ALTER DATABASE %s SET citus.shard_count = %d`, quote(name), testShards))
		return err
	})
}

// seal refuses new connections to the database name and ends the open ones, so that it can be copied. Otherwise Citus'
// own daemon would keep a connection.
func (i *Instance) seal(ctx context.Context, name string) error {
	return i.each(ctx, plainDatabase, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "ALTER DATABASE "+quote(name)+" ALLOW_CONNECTIONS false")
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "3D000" { // the database does not exist
			return nil
		}
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()`, name)
		return err
	})
}
