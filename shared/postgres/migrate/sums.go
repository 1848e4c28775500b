package migrate

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// ErrEarlierBuild is in the error of [Up] for a database that this version cannot upgrade. Either an unreleased build has
// migrated the database, or another program has made the tables.
var ErrEarlierBuild = errors.New("use an empty database")

// source is a file of a migration, with its SHA-256 in hexadecimal.
type source struct{ file, sum string }

// sources returns the files of s by their versions.
func (s Schema) sources() (map[int64]source, error) {
	files, err := fs.Glob(s.Migrations, "*.sql")
	if err != nil {
		return nil, err
	}
	all := map[int64]source{}
	for _, file := range files {
		version, err := goose.NumericComponent(file)
		if err != nil {
			return nil, err
		}
		content, err := fs.ReadFile(s.Migrations, file)
		if err != nil {
			return nil, err
		}
		all[version] = source{file, fmt.Sprintf("%x", sha256.Sum256(content))}
	}
	return all, nil
}

// recorder is goose's store for Postgres, with the sum of each migration in the row that records the migration. So the
// sum is written in the transaction of the migration.
type recorder struct {
	database.Store
	sources map[int64]source // by version
}

// CreateVersionTable creates the table that records the migrations.
func (r recorder) CreateVersionTable(ctx context.Context, db database.DBTxConn) error {
	if err := r.Store.CreateVersionTable(ctx, db); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, "ALTER TABLE "+pgx.Identifier{r.Tablename()}.Sanitize()+" ADD COLUMN sha256 text")
	return err
}

// Insert records a migration with its sum. Version 0, which goose records in a new table, has none.
func (r recorder) Insert(ctx context.Context, db database.DBTxConn, req database.InsertRequest) error {
	_, err := db.ExecContext(ctx, "INSERT INTO "+pgx.Identifier{r.Tablename()}.Sanitize()+" (version_id, is_applied, sha256) VALUES ($1, true, nullif($2, ''))",
		req.Version, r.sources[req.Version].sum)
	return err
}

// check compares the recorded migrations with those of this build. The error names the first migration that was applied
// with other content, or with no sum at all. Migrations that this build lacks are those of a later version.
func (s Schema) check(ctx context.Context, db *sql.DB, sources map[int64]source) error {
	rows, err := db.QueryContext(ctx, "SELECT version_id, coalesce(to_jsonb(m)->>'sha256', '') FROM "+pgx.Identifier{s.Table()}.Sanitize()+
		" m WHERE version_id > 0 ORDER BY version_id")
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == undefinedTable {
		return nil
	}
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var version int64
		var sum string
		if err := rows.Scan(&version, &sum); err != nil {
			return err
		}
		if sum == "" {
			return fmt.Errorf("version %d was applied by an unreleased build: %w", version, ErrEarlierBuild)
		}
		if own, ok := sources[version]; ok && own.sum != sum {
			return fmt.Errorf("%s was applied with other content by an unreleased build: %w", own.file, ErrEarlierBuild)
		}
	}
	return rows.Err()
}
