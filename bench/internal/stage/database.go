package stage

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/bench/internal/must"
)

// Database is one database of a [Stage]: the URLs over TCP for its roles owner, reader and ingest.
type Database struct {
	Owner, Reader, Ingest string

	admin string // the superuser's URL
}

// Database makes the database name and its three roles, unless they exist, and returns their URLs.
func (s *Stage) Database(ctx context.Context, name string) Database {
	owner, reader, ingest := name+"_owner", name+"_reader", name+"_ingest"
	for _, role := range []string{owner, reader, ingest} {
		must.Do(s.postgres.EnsureRole(ctx, role))
	}
	must.Do(s.postgres.EnsureDatabase(ctx, name, owner))
	return Database{
		Owner: s.postgres.TCPURL(owner, name), Reader: s.postgres.TCPURL(reader, name), Ingest: s.postgres.TCPURL(ingest, name),
		admin: s.postgres.AdminURL(),
	}
}

// Checkpoint lets the Postgres server write its changed pages now, so that the server does not write them during a
// round.
func (d Database) Checkpoint(ctx context.Context) { Database{Owner: d.admin}.Run(ctx, "CHECKPOINT") }

// Run runs the statements one after the other in one connection, as the owner of the database.
func (d Database) Run(ctx context.Context, statements ...string) {
	conn := d.connect(ctx)
	defer conn.Close(context.WithoutCancel(ctx))
	for _, sql := range statements {
		must.Get(conn.Exec(ctx, sql))
	}
}

// Number runs a query as the owner of the database, and returns the one integer of its result.
func (d Database) Number(ctx context.Context, query string) (n int64) {
	conn := d.connect(ctx)
	defer conn.Close(context.WithoutCancel(ctx))
	must.Do(conn.QueryRow(ctx, query).Scan(&n))
	return n
}

// Load inserts n rows into a table by COPY. row(i) returns the values of row i, from 0, in the order of columns.
func (d Database) Load(ctx context.Context, table string, columns []string, n int, row func(i int) []any) {
	conn := d.connect(ctx)
	defer conn.Close(context.WithoutCancel(ctx))
	must.Get(conn.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromSlice(n, func(i int) ([]any, error) { return row(i), nil })))
}

// WithoutIndexes drops the indexes and the primary key of a table, runs fill, and creates the indexes and the key
// again. Filling a table with indexes would take several times as long.
func (d Database) WithoutIndexes(ctx context.Context, table string, fill func()) {
	conn := d.connect(ctx)
	defer conn.Close(context.WithoutCancel(ctx))
	var off, on string
	var drop, create []string
	rows := must.Get(conn.Query(ctx, indexesOf, table))
	must.Get(pgx.ForEachRow(rows, []any{&off, &on}, func() error {
		drop, create = append(drop, off), append(create, on)
		return nil
	}))
	d.Run(ctx, drop...)
	fill()
	d.Run(ctx, append([]string{"SET maintenance_work_mem = '512MB'"}, create...)...)
}

// indexesOf is a query for the statements that drop and create each index of the table $1. The primary key's index is
// last.
const indexesOf = `
SELECT CASE WHEN c.oid IS NULL THEN format('DROP INDEX %s', i.indexrelid::regclass)
            ELSE format('ALTER TABLE %s DROP CONSTRAINT %I', i.indrelid::regclass, c.conname) END,
       CASE WHEN c.oid IS NULL THEN pg_get_indexdef(i.indexrelid)
            ELSE format('ALTER TABLE %s ADD CONSTRAINT %I %s', i.indrelid::regclass, c.conname, pg_get_constraintdef(c.oid)) END
FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype IN ('p', 'u')
WHERE i.indrelid = $1::text::regclass
ORDER BY i.indisprimary, i.indexrelid`

// Dump runs a query by COPY, discards the rows that the server sends, and returns the number of rows.
func (d Database) Dump(ctx context.Context, query string) int64 {
	conn := d.connect(ctx)
	defer conn.Close(context.WithoutCancel(ctx))
	return must.Get(conn.PgConn().CopyTo(ctx, io.Discard, "COPY ("+query+") TO STDOUT")).RowsAffected()
}

func (d Database) connect(ctx context.Context) *pgx.Conn { return must.Get(pgx.Connect(ctx, d.Owner)) }
