package pgtest

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
)

// Pool opens a pool that is closed when t ends. The pool waits for a minute until a connection is open, as [Patient] says.
// If o has no AcquireTimeout, the pool also waits that long for a free connection.
func Pool(t testing.TB, url string, o pgdb.Options) *pgdb.Pool {
	t.Helper()
	o.AcquireTimeout = cmp.Or(o.AcquireTimeout, time.Minute)
	p, err := pgdb.Open(t.Context(), config.NewServerURL(Patient(url)), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Connect returns a connection that is closed when t ends.
func Connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), Patient(url))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Patient returns the URL of a database with a connect_timeout of a minute. On a busy machine, Postgres may take seconds to
// open a connection.
func Patient(url string) string {
	separator := "?"
	if strings.Contains(url, separator) {
		separator = "&"
	}
	return url + separator + "connect_timeout=60"
}

// Notes returns a small schema, for tests of packages that have none of their own: a table notes (id int, body text).
func Notes() migrate.Schema {
	return migrate.Schema{
		Name: "notes",
		Migrations: fstest.MapFS{
			"0001_notes.sql": {Data: []byte("-- +goose Up\nCREATE TABLE notes (id int PRIMARY KEY, body text);\n")},
			"0002_body.sql": {Data: []byte("-- +goose NO TRANSACTION\n-- +goose Up\nSET lock_timeout = 0;\n" +
				"CREATE INDEX CONCURRENTLY notes_body ON notes (body);\nRESET lock_timeout;\n")},
		},
		Grants: map[migrate.Role][]string{
			migrate.Reader: {"SELECT ON notes"},
			migrate.Ingest: {"SELECT, INSERT, UPDATE ON notes"},
		},
	}
}
