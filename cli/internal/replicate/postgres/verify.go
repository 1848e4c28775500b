package postgres

import (
	"context"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/cli/internal/columns"
	"github.com/lectern-dev/lectern/cli/internal/replicate"
	"github.com/lectern-dev/lectern/client"
)

// state is a state of a copy: a transaction of a connection that writes nothing.
type state struct {
	*Destination
	tx pgx.Tx
}

// Look returns the state that the last committed batch left, and its position. It is a [replicate.State].
func (d *Destination) Look(ctx context.Context) (_ replicate.State, at replicate.Position, err error) {
	s := &state{Destination: &Destination{Options: d.Options, config: d.config, sql: d.sql}}
	if err := s.connect(ctx); err != nil {
		return nil, at, err
	}
	if err := s.explain("read", s.begin(ctx)); err != nil {
		_ = s.Close()
		return nil, at, err
	}
	return s, s.at, nil
}

func (s *state) begin(ctx context.Context) (err error) {
	if _, err := s.conn.Exec(ctx, `SET TIME ZONE 'UTC';`+toJSONB); err != nil {
		return err
	}
	if s.tx, err = s.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}); err != nil {
		return err
	}
	found, err := s.relations(ctx, s.tx)
	if err != nil {
		return err
	}
	if found[stateTable] == nil {
		return fmt.Errorf("%s has no copy", s.Destination)
	}
	return s.check(ctx, s.tx, found)
}

// History reports that the tables have one row for each key.
func (*state) History() bool { return false }

func (s *state) Close() error { return s.Destination.Close() }

func (s *state) Rows(ctx context.Context) iter.Seq2[client.Change, error] {
	in := func(table string) string { return pgx.Identifier{s.Schema, table}.Sanitize() }
	entry := names(entryColumns, "entry_data", "entry_data_text", "entry_columns", "removed_at", "removal_reason")
	// The columns have the names of the API.
	sql := `
SELECT seq, row_to_json(r), NULL FROM (
    SELECT ` + listed("", entry) + `, coalesce(entry_data::text, entry_data_text, '') AS entry_data FROM ` + in("entries") + ` WHERE removed_at IS NULL
) AS r
UNION ALL
SELECT seq, NULL, row_to_json(r) FROM ` + in("events") + ` AS r WHERE removed_at IS NULL`
	return func(yield func(client.Change, error) bool) {
		rows, err := s.tx.Query(ctx, sql)
		if err == nil {
			defer rows.Close()
			for rows.Next() {
				c := client.Change{Type: client.EntryChanged}
				err := rows.Scan(&c.Seq, &c.Entry, &c.Event)
				if c.Event != nil {
					c.Type = client.EventAdded
				}
				if !yield(c, s.explain("read", err)) || err != nil {
					return
				}
			}
			err = rows.Err()
		}
		if err != nil {
			yield(client.Change{}, s.explain("read", err))
		}
	}
}

// storedData returns JSON as entry_data or entry_data_text has it.
const storedData = `
SELECT CASE WHEN u.plain THEN u.data::jsonb::text ELSE coalesce(pg_temp.lectern_to_jsonb(u.data)::text, u.data) END
FROM unnest($1::text[], $2::boolean[]) WITH ORDINALITY AS u (data, plain, n)
ORDER BY n`

func (s *state) Stored(ctx context.Context, changes []client.Change) ([]client.Change, error) {
	var texts []string
	var plains []bool
	for _, c := range changes {
		if c.Entry != nil {
			texts, plains = append(texts, c.Entry.Data), append(plains, columns.Plain(c.Entry.Data))
		}
	}
	rows, err := s.tx.Query(ctx, storedData, texts, plains)
	if err != nil {
		return nil, s.explain("read", err)
	}
	if texts, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return nil, s.explain("read", err)
	}
	for _, c := range changes {
		if c.Entry != nil {
			c.Entry.Data, texts = texts[0], texts[1:]
		}
	}
	return changes, nil
}

// Mend removes and adds rows, and replaces the project's other records, in one transaction.
func (d *Destination) Mend(ctx context.Context, m *replicate.Mending) error {
	keys := map[client.ChangeType][]string{}
	for key := range m.Keys {
		keys[key.Type] = append(keys[key.Type], key.ID)
	}
	in := func(table string) string { return pgx.Identifier{d.Schema, table}.Sanitize() }
	err := pgx.BeginFunc(ctx, d.conn, func(tx pgx.Tx) error {
		remove := `WITH removed AS (DELETE FROM ` + in("entries") + ` WHERE entry_id = ANY($1)) DELETE FROM ` + in("events") + ` WHERE event_key = ANY($2)`
		if _, err := tx.Exec(ctx, remove, keys[client.EntryChanged], keys[client.EventAdded]); err != nil {
			return err
		}
		for changes, err := range m.Put {
			if err != nil {
				return err
			}
			if _, err := d.put(ctx, tx, (&replicate.Batch{Changes: changes}).Newest(), d.loadTo != nil); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `UPDATE `+in(stateTable)+` SET project = $1`, m.Digest); err != nil {
			return err
		}
		return d.putProject(ctx, tx, m.Project)
	})
	return d.explain("repair", err)
}

// SetVerified stores the result in the table of the position.
func (d *Destination) SetVerified(ctx context.Context, v replicate.Verified) error {
	return d.brief(ctx, func(conn *pgx.Conn, table string) error {
		_, err := conn.Exec(ctx, `UPDATE `+table+` SET verified_at = $1, differences = $2`, v.At, v.Differences)
		return err
	})
}

// Status reads the table of the position.
func (d *Destination) Status(ctx context.Context) (s replicate.Status, err error) {
	err = d.brief(ctx, func(conn *pgx.Conn, table string) error {
		return conn.QueryRow(ctx, `SELECT project_id, cursor, seq, coalesce(verified_at, '0001-01-01Z'), coalesce(differences, 0) FROM `+table).
			Scan(&s.ProjectID, &s.Position.Cursor, &s.Position.Seq, &s.Verified.At, &s.Verified.Differences)
	})
	s.Verified.At = s.Verified.At.UTC()
	return s, err
}

// brief calls do with a connection for this call, and the name of the table of the position.
func (d *Destination) brief(ctx context.Context, do func(conn *pgx.Conn, table string) error) (err error) {
	own := Destination{Options: d.Options, config: d.config}
	if err := own.connect(ctx); err != nil {
		return err
	}
	defer own.Close()
	return own.explain("read", do(own.conn, pgx.Identifier{d.Schema, stateTable}.Sanitize()))
}
