package stage

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Database is one database of a stage: its URLs over TCP, by role.
type Database struct {
	Owner, Reader, Ingest string

	servers []string // that have a part of it: the superuser's URLs
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Database makes a database and its three roles if they do not exist.
func (s *Stage) Database(ctx context.Context, name string) (Database, error) {
	owner, reader, ingest := name+"_owner", name+"_reader", name+"_ingest"
	for _, role := range []string{owner, reader, ingest} {
		if err := s.Postgres.EnsureRole(ctx, role); err != nil {
			return Database{}, err
		}
	}
	if err := s.Postgres.EnsureDatabase(ctx, name, owner); err != nil {
		return Database{}, err
	}
	return Database{
		Owner: s.Postgres.TCPURL(owner, name), Reader: s.Postgres.TCPURL(reader, name), Ingest: s.Postgres.TCPURL(ingest, name),
		servers: []string{s.Postgres.AdminURL()},
	}, nil
}

// Checkpoint lets its servers write now, so that they do not write during a round.
func (d Database) Checkpoint(ctx context.Context) error {
	for _, url := range d.servers {
		if err := (Database{Owner: url}).Run(ctx, "CHECKPOINT"); err != nil {
			return err
		}
	}
	return nil
}

// Run runs statements one after the other, as the owner.
func (d Database) Run(ctx context.Context, statements ...string) error {
	return d.connected(ctx, func(conn *pgx.Conn) error {
		for _, sql := range statements {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
}

// Number runs a query that returns one integer, as the owner.
func (d Database) Number(ctx context.Context, query string) (n int64, err error) {
	err = d.connected(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, query).Scan(&n) })
	return n, err
}

// Load copies n rows into a table.
func (d Database) Load(ctx context.Context, table string, columns []string, n int, row func(i int) []any) error {
	return d.connected(ctx, func(conn *pgx.Conn) error {
		_, err := conn.CopyFrom(ctx, pgx.Identifier{table}, columns,
			pgx.CopyFromSlice(n, func(i int) ([]any, error) { return row(i), nil }))
		return err
	})
}

// WithoutIndexes drops the indexes and the primary key of a table, runs fill, and creates them again. This takes a
// fraction of the time of filling a table with indexes.
func (d Database) WithoutIndexes(ctx context.Context, table string, fill func() error) error {
	var drop, create []string
	err := d.connected(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, indexesOf, table)
		if err != nil {
			return err
		}
		var off, on string
		_, err = pgx.ForEachRow(rows, []any{&off, &on}, func() error {
			drop, create = append(drop, off), append(create, on)
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	if err := d.Run(ctx, drop...); err != nil {
		return err
	}
	if err := fill(); err != nil {
		return err
	}
	return d.Run(ctx, append([]string{"SET maintenance_work_mem = '512MB'"}, create...)...)
}

// indexesOf returns the statements that drop and create each index of a table, that of its primary key last.
const indexesOf = `
SELECT CASE WHEN c.oid IS NULL THEN format('DROP INDEX %s', i.indexrelid::regclass)
            ELSE format('ALTER TABLE %s DROP CONSTRAINT %I', i.indrelid::regclass, c.conname) END,
       CASE WHEN c.oid IS NULL THEN pg_get_indexdef(i.indexrelid)
            ELSE format('ALTER TABLE %s ADD CONSTRAINT %I %s', i.indrelid::regclass, c.conname, pg_get_constraintdef(c.oid)) END
FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype IN ('p', 'u')
WHERE i.indrelid = $1::text::regclass
ORDER BY i.indisprimary, i.indexrelid`

// LoadText copies text in COPY's text format into a table.
func (d Database) LoadText(ctx context.Context, table string, columns []string, text string) (rows int64, err error) {
	err = d.connected(ctx, func(conn *pgx.Conn) error {
		tag, err := conn.PgConn().CopyFrom(ctx, strings.NewReader(text), "COPY "+pgx.Identifier{table}.Sanitize()+" ("+quoted(columns)+") FROM STDIN")
		rows = tag.RowsAffected()
		return err
	})
	return rows, err
}

// Dump copies the result of a query out of the database and returns the number of rows.
func (d Database) Dump(ctx context.Context, query string) (rows int64, err error) {
	err = d.connected(ctx, func(conn *pgx.Conn) error {
		tag, err := conn.PgConn().CopyTo(ctx, sink{}, "COPY ("+query+") TO STDOUT")
		rows = tag.RowsAffected()
		return err
	})
	return rows, err
}

// sink discards everything.
type sink struct{}

// Write discards b.
func (sink) Write(b []byte) (int, error) { return len(b), nil }

func quoted(columns []string) string {
	all := slices.Clone(columns)
	for i := range all {
		all[i] = pgx.Identifier{all[i]}.Sanitize()
	}
	return strings.Join(all, ", ")
}

func (d Database) connected(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, d.Owner)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(conn)
}
