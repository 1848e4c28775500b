// Package pgtest gives tests a real Postgres: one private server for the test binary, and for each
// test a database of its own, cloned from a template that was migrated once. A package uses it with
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// Where the machine has no Postgres the tests that need one are skipped, and fail when CI=true. With
// TEST_DATABASE_URL, a superuser's URL, that server is used instead of a private one. Where that is the
// coordinator of a Citus cluster, databases are made on all of its nodes, and tests that want a server of
// their own are skipped: those are of plain Postgres, whatever is tested beside.
//
// Production code does not import it; the linter sees to that.
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

	"github.com/lectern-dev/lectern/shared/pgmigrate"
	"github.com/lectern-dev/lectern/shared/testing/pglocal"
)

// bound is the longest that any single step here may take.
const bound = 2 * time.Minute

// shared is the test binary's server. It is the package's one variable, since nothing but the process
// joins TestMain and the tests.
var shared struct {
	sync.Mutex
	main   bool // Main runs, and will stop the server
	server *Instance
	err    error
}

// Main runs the tests, m being a testing.M or around one, and exits with their code. The server starts with
// the first test that asks for it, and goes with the process however that ends: by panic, time-out or kill,
// data and all.
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

// Server returns the test binary's server. A test that kills or pauses it must bring it back, and must
// not run in parallel with others; [Private] gives one that may be mistreated at will.
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

// Database returns a database of t's own on the test binary's server, migrated to s. It is dropped when
// t ends.
func Database(t testing.TB, s pgmigrate.Schema) DB {
	t.Helper()
	return Server(t).Database(t, s)
}

// Private returns a server that runs for t alone, with settings beside the usual ones, on the Unix
// socket and on a TCP port. It is stopped and removed when t ends.
func Private(t testing.TB, settings map[string]string) *Instance {
	t.Helper()
	if url := os.Getenv("TEST_DATABASE_URL"); url != "" {
		if i, err := given(url); err == nil && i.Citus() {
			t.Skip("pgtest: a test of a plain Postgres of its own, and this run is of Citus")
		}
	}
	i, err := launch(settings, pglocal.FreePort)
	requirePostgres(t, err)
	t.Cleanup(func() {
		if err := i.close(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return i
}

// requirePostgres skips t where there is no Postgres, and fails it on any other err.
func requirePostgres(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, pglocal.ErrNoBinaries) && os.Getenv("CI") != "true" {
		t.Skipf("pgtest: needs Postgres: %v", err)
	}
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
}

// Instance is a server for tests.
type Instance struct {
	// Server kills, pauses and restarts it; nil for the server of TEST_DATABASE_URL.
	*pglocal.Server

	admin   string // the superuser's URL
	dir     string
	janitor *janitor
	prefix  string   // of the names of templates
	doomed  bool     // goes with its test, databases and all
	members []member // of the Citus cluster that it coordinates, itself first; none when it does not

	mu        sync.Mutex
	templates map[string]string // names by schema
}

// open returns the server that TEST_DATABASE_URL names, or a private one.
func open() (*Instance, error) {
	if url := os.Getenv("TEST_DATABASE_URL"); url != "" {
		return given(url)
	}
	return launch(nil, pglocal.NoTCP)
}

func launch(settings map[string]string, port int) (*Instance, error) {
	return place(pglocal.Options{Port: port, Settings: usual(settings)}, pglocal.Start)
}

// place runs a server in a folder of its own.
func place(o pglocal.Options, start func(context.Context, pglocal.Options) (*pglocal.Server, error)) (*Instance, error) {
	dir, err := os.MkdirTemp("", "lectern-pgtest-")
	if err != nil {
		return nil, err
	}
	// Under root the server runs as another user, who passes through here to its own folder.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	o.Dir, o.NoSync = filepath.Join(dir, "pg"), true
	server, err := start(ctx, o)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	i := &Instance{Server: server, admin: server.AdminURL(), dir: dir, templates: map[string]string{}}
	if i.janitor, err = hire(server.Dir(), dir); err != nil {
		return nil, errors.Join(err, i.close())
	}
	return i, nil
}

// usual returns settings over those that suit tests.
func usual(settings map[string]string) map[string]string {
	all := map[string]string{
		"max_connections":                     "200",
		"shared_buffers":                      "64MB",
		"autovacuum":                          "off", // timing of plans and of bloat is the test's to choose
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
	err := errors.Join(i.Kill(), i.Stop(ctx)) // the data is thrown away: nothing to flush
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
