// Package pgtest gives tests a real Postgres. The test binary has one private server. Each test has a database of its
// own, cloned from a template that was migrated once. A package uses it with
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// If the machine has no Postgres, tests that need it are skipped, or fail if CI=true. With TEST_DATABASE_URL, a
// superuser's URL, that server is used instead of a private one. If it is the coordinator of a Citus cluster, databases
// are created on all of its nodes. Tests that need a server of their own are then skipped, because they test plain
// Postgres.
//
// Production code does not import it; the linter checks this.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/postgres/pglocal"
	"github.com/lectern-dev/lectern/shared/testing/needs"
)

// bound is the time limit of each step in this package.
const bound = 2 * time.Minute

// shared is the test binary's server. It must be a variable, because TestMain and the tests share only the process.
var shared struct {
	sync.Mutex
	main   bool // Main runs and will stop the server
	server *Instance
	err    error
}

// Main runs the tests of m, which is a testing.M or a wrapper of one, and exits with their code. The server starts with
// the first test that needs it. It is removed with its data when the process ends, even by a panic, a time-out or a
// kill.
func Main(m interface{ Run() int }) {
	shared.Lock()
	shared.main = true
	shared.Unlock()
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		if err := shared.server.close(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// Server returns the test binary's server. A test that kills or pauses it must start it again, and must not run in
// parallel with others. [Private] returns a server that a test may break.
func Server(t testing.TB) *Instance {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.main {
		t.Fatal("pgtest: the package has no TestMain that calls pgtest.Main")
	}
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = open()
	}
	requirePostgres(t, shared.err)
	return shared.server
}

// Database returns a database of t's own on the test binary's server, migrated to s, as [Instance.Database] does.
func Database(t testing.TB, s migrate.Schema) DB {
	t.Helper()
	return Server(t).Database(t, s)
}

// Undistributed is like [Database], but the database is not distributed if the server is the coordinator of a Citus cluster.
// Such a database is quicker to make.
func Undistributed(t testing.TB, s migrate.Schema) DB {
	t.Helper()
	if server := Server(t); server.Citus() {
		return server.PlainDatabase(t, s)
	}
	return Database(t, s)
}

// Private returns a server for t alone, with a Unix socket and a TCP port. It has the given settings in addition to the
// usual ones. The server is stopped and removed when t ends.
func Private(t testing.TB, settings map[string]string) *Instance {
	t.Helper()
	if url := os.Getenv("TEST_DATABASE_URL"); url != "" {
		if i, err := given(url); err == nil && i.Citus() {
			t.Skip("pgtest: this test needs a plain Postgres of its own, and this run uses Citus")
		}
	}
	i, err := launch(settings, needs.Port(t))
	requirePostgres(t, err)
	t.Cleanup(func() {
		if err := i.close(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return i
}

// requirePostgres fails t for any err.
func requirePostgres(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
}

// Instance is a server for tests.
type Instance struct {
	// Server kills, pauses and restarts the server. It is nil for the server of TEST_DATABASE_URL.
	*pglocal.Server

	admin      string // the superuser's URL
	dir        string
	janitor    *janitor
	prefix     string   // of the names of templates
	disposable bool     // removed at the end of its test, with its databases
	members    []member // nodes of its Citus cluster, the coordinator first; empty on plain Postgres

	mu        sync.Mutex
	templates map[string]string // names by schema
}

// open returns the server in TEST_DATABASE_URL, or a private one.
func open() (*Instance, error) {
	if url := os.Getenv("TEST_DATABASE_URL"); url != "" {
		return given(url)
	}
	return launch(nil, pglocal.NoTCP)
}

func launch(settings map[string]string, port int) (*Instance, error) {
	return startIn(pglocal.Options{Port: port, Settings: usual(settings)}, pglocal.Start)
}

// startIn runs a server in a folder of its own.
func startIn(o pglocal.Options, start func(context.Context, pglocal.Options) (*pglocal.Server, error)) (*Instance, error) {
	dir, err := os.MkdirTemp("", "lectern-pgtest-")
	if err != nil {
		return nil, err
	}
	// If this process is root, the server runs as another user, which must be able to enter this folder.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	o.Dir, o.NoSync = filepath.Join(dir, "pg"), true
	if cache, err := os.UserCacheDir(); err == nil {
		o.Cache = filepath.Join(cache, "lectern")
	}
	server, err := start(ctx, o)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	i := &Instance{Server: server, admin: server.AdminURL(), dir: dir, templates: map[string]string{}}
	if i.janitor, err = newJanitor(server.Dir(), dir); err != nil {
		return nil, errors.Join(err, i.close())
	}
	return i, nil
}

// usual returns the usual settings for tests, plus the given ones.
func usual(settings map[string]string) map[string]string {
	all := map[string]string{
		"max_connections":                     "500",
		"shared_buffers":                      "64MB",
		"autovacuum":                          "off", // tests control when statistics and dead rows change
		"max_prepared_transactions":           "10",
		"log_min_messages":                    "fatal",
		"wal_level":                           "minimal",
		"max_wal_senders":                     "0",
		"checkpoint_timeout":                  "1h",
		"idle_in_transaction_session_timeout": "5min",
	}
	for name, value := range settings {
		all[name] = value
	}
	return all
}

func (i *Instance) close() error {
	if i.Server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	err := errors.Join(i.Kill(), i.Stop(ctx)) // no flush is needed, because the data is removed
	err = errors.Join(err, pglocal.Remove(filepath.Join(i.dir, "pg")), os.RemoveAll(i.dir))
	if i.janitor != nil {
		i.janitor.dismiss()
	}
	return err
}

// connect runs do with a superuser's connection to db ("" for the admin URL's own).
func (i *Instance) connect(ctx context.Context, db string, do func(*pgx.Conn) error) error {
	cfg, err := pgx.ParseConfig(i.admin)
	if err != nil {
		return err
	}
	if db != "" {
		cfg.Database = db
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return do(conn)
}
