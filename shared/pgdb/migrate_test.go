package pgdb_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/lectern-dev/lectern/shared/pgdb"
	"github.com/lectern-dev/lectern/shared/testing/pglocal"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMigrateSeveralAtOnceAndAgain(t *testing.T) {
	empty := pgdb.Schema{Name: "notes", Migrations: fstest.MapFS{"0001_nothing.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")}}}
	db := pgtest.Database(t, empty)
	// As a version of the code with more migrations comes upon this database.
	full := notes()
	full.Migrations.(fstest.MapFS)["0003_notes.sql"] = full.Migrations.(fstest.MapFS)["0001_notes.sql"]
	full.Migrations.(fstest.MapFS)["0004_body.sql"] = full.Migrations.(fstest.MapFS)["0002_body.sql"]
	full.Migrations.(fstest.MapFS)["0001_nothing.sql"] = empty.Migrations.(fstest.MapFS)["0001_nothing.sql"]
	delete(full.Migrations.(fstest.MapFS), "0001_notes.sql")
	delete(full.Migrations.(fstest.MapFS), "0002_body.sql")
	roles := map[pgdb.Role]string{pgdb.Reader: pgdb.UserOf(db.ReaderURL), pgdb.Ingest: pgdb.UserOf(db.IngestURL)}
	log := slog.New(slog.DiscardHandler)

	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = pgdb.Migrate(context.Background(), db.OwnerURL, full, roles, log) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if err := pgdb.Migrate(t.Context(), db.OwnerURL, full, roles, log); err != nil {
		t.Errorf("a second time: %v", err)
	}
	// The version before still starts beside it.
	if err := pgdb.Migrate(t.Context(), db.OwnerURL, empty, roles, log); err != nil {
		t.Errorf("by the version before: %v", err)
	}
	p := open(t, db.OwnerURL, pgdb.Options{})
	var reads, readerWrites, writes, indexed bool
	err := p.QueryRow(t.Context(), []any{&reads, &readerWrites, &writes, &indexed}, `
		SELECT has_table_privilege($1, 'notes', 'SELECT'), has_table_privilege($1, 'notes', 'INSERT'),
			has_table_privilege($2, 'notes', 'INSERT'), (SELECT indisvalid FROM pg_index WHERE indexrelid = 'notes_body'::regclass)`,
		roles[pgdb.Reader], roles[pgdb.Ingest])
	if err != nil || !reads || readerWrites || !writes || !indexed {
		t.Errorf("reader selects %t, inserts %t; ingest inserts %t; index valid %t; %v", reads, readerWrites, writes, indexed, err)
	}
}

func TestMigrateSkipsRolesThatAreNotThere(t *testing.T) {
	db := pgtest.Database(t, notes())
	owner := pgdb.UserOf(db.OwnerURL)
	for _, roles := range []map[pgdb.Role]string{nil, {pgdb.Reader: ""}, {pgdb.Reader: owner, pgdb.Ingest: owner}} {
		if err := pgdb.Migrate(t.Context(), db.OwnerURL, notes(), roles, slog.New(slog.DiscardHandler)); err != nil {
			t.Errorf("roles %v: %v", roles, err)
		}
	}
	odd := map[pgdb.Role]string{pgdb.Reader: `no such "role"; DROP TABLE notes`}
	if err := pgdb.Migrate(t.Context(), db.OwnerURL, notes(), odd, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("an unknown role was given grants")
	}
}

func TestMigrateLimitsTheRolesWhereItMay(t *testing.T) {
	server := pgtest.Private(t, nil)
	db := server.Database(t, notes())
	roles := map[pgdb.Role]string{pgdb.Reader: pgdb.UserOf(db.ReaderURL), pgdb.Ingest: pgdb.UserOf(db.IngestURL)}
	log := slog.New(slog.DiscardHandler)
	timeout := func(url string) (got string) {
		t.Helper()
		if err := open(t, url, pgdb.Options{}).QueryRow(t.Context(), []any{&got}, `SHOW statement_timeout`); err != nil {
			t.Fatal(err)
		}
		return got
	}
	// The owner may not alter other roles, and that is no fault.
	if err := pgdb.Migrate(t.Context(), db.OwnerURL, notes(), roles, log); err != nil {
		t.Fatal(err)
	}
	if got := timeout(db.ReaderURL); got != "0" {
		t.Errorf("by the owner: the reader's statement_timeout is %s", got)
	}
	admin := server.URL(pglocal.Superuser, db.Name)
	own := open(t, admin, pgdb.Options{})
	if _, err := own.Exec(t.Context(), `ALTER ROLE notes_ingest SET statement_timeout = '7s'`); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := pgdb.Migrate(t.Context(), admin, notes(), roles, log); err != nil {
			t.Fatal(err)
		}
	}
	if got := timeout(db.ReaderURL); got != "1min" {
		t.Errorf("by a superuser: the reader's statement_timeout is %s, want 1min", got)
	}
	if got := timeout(db.IngestURL); got != "7s" {
		t.Errorf("one that was set before became %s, want 7s as it was", got)
	}
}

func TestABrokenMigrationIsReportedAndUndone(t *testing.T) {
	db := pgtest.Database(t, notes())
	broken := notes()
	broken.Migrations.(fstest.MapFS)["0003_broken.sql"] = &fstest.MapFile{
		Data: []byte("-- +goose Up\nCREATE TABLE half (id int);\nSELECT no_such_column;\n"),
	}
	log := slog.New(slog.DiscardHandler)
	if err := pgdb.Migrate(t.Context(), db.OwnerURL, broken, nil, log); err == nil {
		t.Fatal("no error")
	}
	p := open(t, db.OwnerURL, pgdb.Options{})
	var there bool
	if err := p.QueryRow(t.Context(), []any{&there}, `SELECT to_regclass('half') IS NOT NULL`); err != nil || there {
		t.Errorf("half of it was left behind: %t, %v", there, err)
	}
}

func TestUserOf(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"URL", "postgres://reader:pw@h/db", "reader"},
		{"keywords", "user=reader host=h", "reader"},
		{"escaped", "postgres://re%20ader@h/db", "re ader"},
		{"empty", "", ""},
		{"not a URL", "postgres://h:port/db", ""},
	} {
		if got := pgdb.UserOf(tt.in); got != tt.want {
			t.Errorf("%s: UserOf(%q) = %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}
