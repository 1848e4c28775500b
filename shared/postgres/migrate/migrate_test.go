package migrate_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/shared/config"
	"github.com/lectern-dev/lectern/shared/postgres/migrate"
	"github.com/lectern-dev/lectern/shared/postgres/pgdb"
	"github.com/lectern-dev/lectern/shared/postgres/pglocal"
	"github.com/lectern-dev/lectern/shared/testing/eventually"
	"github.com/lectern-dev/lectern/shared/testing/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestMigrateSeveralAtOnceAndAgain(t *testing.T) {
	empty := migrate.Schema{Name: "notes", Migrations: fstest.MapFS{"0001_nothing.sql": {Data: []byte("-- +goose Up\nSELECT 1;\n")}}}
	db := pgtest.Database(t, empty)
	// A newer version with more migrations uses this database.
	full := pgtest.Notes()
	full.Migrations.(fstest.MapFS)["0003_notes.sql"] = full.Migrations.(fstest.MapFS)["0001_notes.sql"]
	full.Migrations.(fstest.MapFS)["0004_body.sql"] = full.Migrations.(fstest.MapFS)["0002_body.sql"]
	full.Migrations.(fstest.MapFS)["0001_nothing.sql"] = empty.Migrations.(fstest.MapFS)["0001_nothing.sql"]
	delete(full.Migrations.(fstest.MapFS), "0001_notes.sql")
	delete(full.Migrations.(fstest.MapFS), "0002_body.sql")
	roles := map[migrate.Role]string{migrate.Reader: migrate.UserOf(db.ReaderURL), migrate.Ingest: migrate.UserOf(db.IngestURL)}
	log := slog.New(slog.DiscardHandler)

	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = migrate.Up(context.Background(), config.NewServerURL(db.OwnerURL), full, roles, log) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if err := migrate.Up(t.Context(), config.NewServerURL(db.OwnerURL), full, roles, log); err != nil {
		t.Errorf("a second time: %v", err)
	}
	// The previous version can still start.
	if err := migrate.Up(t.Context(), config.NewServerURL(db.OwnerURL), empty, roles, log); err != nil {
		t.Errorf("by the previous version: %v", err)
	}
	p := pgtest.Pool(t, db.OwnerURL, pgdb.Options{})
	var reads, readerWrites, writes, indexed bool
	err := p.QueryRow(t.Context(), []any{&reads, &readerWrites, &writes, &indexed}, `
		SELECT has_table_privilege($1, 'notes', 'SELECT'), has_table_privilege($1, 'notes', 'INSERT'),
			has_table_privilege($2, 'notes', 'INSERT'), (SELECT indisvalid FROM pg_index WHERE indexrelid = 'notes_body'::regclass)`,
		roles[migrate.Reader], roles[migrate.Ingest])
	if err != nil || !reads || readerWrites || !writes || !indexed {
		t.Errorf("reader selects %t, inserts %t; ingest inserts %t; index valid %t; %v", reads, readerWrites, writes, indexed, err)
	}
}

// A right that a schema does not list any more is revoked. Rights of other roles and on other tables stay. So do the rights
// that a later version has granted, when code of the version before starts again.
func TestMigrateRevokes(t *testing.T) {
	server := pgtest.Private(t, nil)
	db := server.Database(t, pgtest.Notes())
	log := slog.New(slog.DiscardHandler)
	reader, ingest := migrate.UserOf(db.ReaderURL), migrate.UserOf(db.IngestURL)
	own := pgtest.Pool(t, server.URL(pglocal.Superuser, db.Name), pgdb.Options{})
	may := func(role, privilege, table string) (has bool) {
		t.Helper()
		if err := own.QueryRow(t.Context(), []any{&has}, `SELECT has_any_column_privilege($1, $3, $2)`, role, privilege, table); err != nil {
			t.Fatal(err)
		}
		return has
	}
	up := func(s migrate.Schema, roles map[migrate.Role]string) {
		t.Helper()
		if err := migrate.Up(t.Context(), config.NewServerURL(db.OwnerURL), s, roles, log); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		`GRANT UPDATE (body) ON notes TO notes_reader`, `CREATE TABLE others (id int)`,
		`GRANT SELECT ON others TO notes_reader`, `GRANT SELECT ON notes TO notes_remover`,
	} {
		if _, err := db.Owner.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	up(pgtest.Notes(), map[migrate.Role]string{migrate.Reader: reader, migrate.Ingest: ingest})
	if may(reader, "UPDATE", "notes") || !may(reader, "SELECT", "notes") || !may(ingest, "UPDATE", "notes") {
		t.Error("the reader updates, or a role lacks a listed privilege")
	}
	if !may(reader, "SELECT", "others") || !may("notes_remover", "SELECT", "notes") {
		t.Error("a right on another table, or of another role, is gone")
	}
	// One login for two roles has what each of them has.
	up(pgtest.Notes(), map[migrate.Role]string{migrate.Reader: ingest, migrate.Ingest: ingest})
	if !may(ingest, "UPDATE", "notes") {
		t.Error("a login of two roles lost the right of one of them")
	}
	later := pgtest.Notes()
	later.Migrations.(fstest.MapFS)["0003_nothing.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nSELECT 1;\n")}
	later.Grants[migrate.Reader] = []string{"SELECT, DELETE ON notes"}
	for _, s := range []migrate.Schema{later, pgtest.Notes()} {
		up(s, map[migrate.Role]string{migrate.Reader: reader})
		var deletes bool
		if err := own.QueryRow(t.Context(), []any{&deletes}, `SELECT has_table_privilege($1, 'notes', 'DELETE')`, reader); err != nil || !deletes {
			t.Errorf("the later version's right to delete: %t, %v", deletes, err)
		}
	}
}

func TestMigrateSkipsRolesThatAreNotThere(t *testing.T) {
	db := pgtest.Database(t, pgtest.Notes())
	owner := migrate.UserOf(db.OwnerURL)
	for _, roles := range []map[migrate.Role]string{nil, {migrate.Reader: ""}, {migrate.Reader: owner, migrate.Ingest: owner}} {
		if err := migrate.Up(t.Context(), config.NewServerURL(db.OwnerURL), pgtest.Notes(), roles, slog.New(slog.DiscardHandler)); err != nil {
			t.Errorf("roles %v: %v", roles, err)
		}
	}
	odd := map[migrate.Role]string{migrate.Reader: `no such "role"; DROP TABLE notes`}
	if err := migrate.Up(t.Context(), config.NewServerURL(db.OwnerURL), pgtest.Notes(), odd, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("an unknown role was given grants")
	}
}

func TestMigrateLimitsTheRolesWhereItMay(t *testing.T) {
	server := pgtest.Private(t, nil)
	db := server.Database(t, pgtest.Notes())
	roles := map[migrate.Role]string{migrate.Reader: migrate.UserOf(db.ReaderURL), migrate.Ingest: migrate.UserOf(db.IngestURL)}
	log := slog.New(slog.DiscardHandler)
	timeout := func(url string) (got string) {
		t.Helper()
		if err := pgtest.Pool(t, url, pgdb.Options{}).QueryRow(t.Context(), []any{&got}, `SHOW statement_timeout`); err != nil {
			t.Fatal(err)
		}
		return got
	}
	// The owner cannot alter other roles. Up ignores that.
	if err := migrate.Up(t.Context(), config.NewServerURL(db.OwnerURL), pgtest.Notes(), roles, log); err != nil {
		t.Fatal(err)
	}
	if got := timeout(db.ReaderURL); got != "0" {
		t.Errorf("by the owner: the reader's statement_timeout is %s", got)
	}
	admin := server.URL(pglocal.Superuser, db.Name)
	own := pgtest.Pool(t, admin, pgdb.Options{})
	if _, err := own.Exec(t.Context(), `ALTER ROLE notes_ingest SET statement_timeout = '7s'`); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := migrate.Up(t.Context(), config.NewServerURL(admin), pgtest.Notes(), roles, log); err != nil {
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

// TestABackupDelaysAMigrationAlone checks that a migration waits for a transaction that reads a table, as a backup does. Clients
// read the table meanwhile.
func TestABackupDelaysAMigrationAlone(t *testing.T) {
	db := pgtest.Database(t, pgtest.Notes())
	later := pgtest.Notes()
	later.Migrations.(fstest.MapFS)["0003_title.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nALTER TABLE notes ADD COLUMN title text;\n")}
	backup, err := pgtest.Connect(t, db.OwnerURL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Exec(t.Context(), `LOCK TABLE notes IN ACCESS SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	migrated := make(chan error, 1)
	go func() {
		migrated <- migrate.Up(t.Context(), config.NewServerURL(db.OwnerURL), later, nil, slog.New(slog.DiscardHandler))
	}()
	p := pgtest.Pool(t, db.OwnerURL, pgdb.Options{})
	eventually.True(t, "the migration waits for the table", func() (waits bool) {
		return p.QueryRow(t.Context(), []any{&waits}, `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'notes'::regclass AND NOT granted)`) == nil && waits
	})
	client, read := pgtest.Connect(t, db.ReaderURL), make(chan error, 1)
	go func() {
		_, err := client.Exec(context.Background(), `SELECT FROM notes`)
		read <- err
	}()
	if err := eventually.Receive(t, "a client reads the table", read); err != nil {
		t.Error(err)
	}
	if err := backup.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := eventually.Receive(t, "the migration is done", migrated); err != nil {
		t.Error(err)
	}
}

func TestABrokenMigrationIsReportedAndUndone(t *testing.T) {
	db := pgtest.Database(t, pgtest.Notes())
	broken := pgtest.Notes()
	broken.Migrations.(fstest.MapFS)["0003_broken.sql"] = &fstest.MapFile{
		Data: []byte("-- +goose Up\nCREATE TABLE half (id int);\nSELECT no_such_column;\n"),
	}
	log := slog.New(slog.DiscardHandler)
	if err := migrate.Up(t.Context(), config.NewServerURL(db.OwnerURL), broken, nil, log); err == nil {
		t.Fatal("no error")
	}
	p := pgtest.Pool(t, db.OwnerURL, pgdb.Options{})
	var there bool
	if err := p.QueryRow(t.Context(), []any{&there}, `SELECT to_regclass('half') IS NOT NULL`); err != nil || there {
		t.Errorf("a part of it remains: %t, %v", there, err)
	}
}

// TestDatabasesThatNoMigrationUpgrades checks that a database is refused by name, and stays as it was, if other content of a
// migration was applied to it.
func TestDatabasesThatNoMigrationUpgrades(t *testing.T) {
	change := func(name string) func(fstest.MapFS) {
		return func(files fstest.MapFS) {
			files[name] = &fstest.MapFile{Data: append(slices.Clone(files[name].Data), '\n')}
		}
	}
	for _, tt := range []struct {
		name   string
		sql    string             // changes the database
		change func(fstest.MapFS) // changes the files of the next build
		want   string
	}{
		{"another first file", "", change("0001_notes.sql"), "0001_notes.sql was applied with other content by an unreleased build"},
		{"another last file", "", change("0002_body.sql"), "0002_body.sql was applied with other content by an unreleased build"},
		{"no sums", `ALTER TABLE notes_migrations DROP COLUMN sha256`, nil, "version 1 was applied by an unreleased build"},
		{"one sum is missing", `UPDATE notes_migrations SET sha256 = NULL WHERE version_id = 2`, nil, "version 2 was applied by an unreleased build"},
		{"tables of another program", `DROP TABLE notes_migrations`, nil, `relation "notes" already exists`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := pgtest.Database(t, pgtest.Notes())
			if _, err := db.Owner.Exec(t.Context(), tt.sql); err != nil {
				t.Fatal(err)
			}
			next := pgtest.Notes()
			files := next.Migrations.(fstest.MapFS)
			files["0003_more.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE more (id int);\n")}
			if tt.change != nil {
				tt.change(files)
			}
			err := migrate.Up(t.Context(), config.NewServerURL(db.OwnerURL), next, nil, slog.New(slog.DiscardHandler))
			if !errors.Is(err, migrate.ErrEarlierBuild) || !strings.Contains(err.Error(), "migrate notes: "+tt.want) || !strings.HasSuffix(err.Error(), ": use an empty database") {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			var more bool
			if err := pgtest.Pool(t, db.OwnerURL, pgdb.Options{}).QueryRow(t.Context(), []any{&more}, `SELECT to_regclass('more') IS NOT NULL`); err != nil || more {
				t.Errorf("a later migration ran: %t, %v", more, err)
			}
		})
	}
}

// TestMigrationsNeverChange checks the SHA-256 of each migration of the project. A database records the sums of what was
// applied, so a changed file is refused by every database that has the file.
func TestMigrationsNeverChange(t *testing.T) {
	const root = "../../.."
	var found strings.Builder
	for _, pattern := range []string{"shared/auth/pgkeys", "services/*/internal/store"} {
		files, err := filepath.Glob(filepath.Join(root, pattern, "migrations", "*.sql"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no migrations: %v", pattern, err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&found, "%x  %s\n", sha256.Sum256(content), filepath.ToSlash(name))
		}
	}
	released, err := os.ReadFile("testdata/sums")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(released), found.String()); diff != "" {
		t.Errorf("a migration that was applied never changes: put the change into a file with the next number, and add the line of the new file to testdata/sums\n%s", diff)
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
		if got := migrate.UserOf(tt.in); got != tt.want {
			t.Errorf("%s: UserOf(%q) = %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}
