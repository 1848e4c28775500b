package postgres

import (
	"context"
	"fmt"
	"iter"
	"strings"

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
	if err := s.check(ctx, s.tx, found); err != nil {
		return err
	}
	return s.loadViews(ctx, s.tx)
}

// History reports that the tables have one row for each key.
func (*state) History() bool { return false }

func (s *state) Close() error { return s.Destination.Close() }

// NotCompared counts the rows that are marked as removed. Their data is no longer at the source.
func (s *state) NotCompared(ctx context.Context) (list []string, err error) {
	if s.Columns.All || len(s.Columns.Listed) > 0 {
		list = append(list, "the definitions of views")
	}
	for _, table := range []string{"entries", "events"} {
		var n int64
		if err := s.tx.QueryRow(ctx, `SELECT count(*) FROM `+pgx.Identifier{s.Schema, table}.Sanitize()+` WHERE removed_at IS NOT NULL`).Scan(&n); err != nil {
			return nil, s.explain("read", err)
		}
		if n > 0 {
			list = append(list, fmt.Sprintf("rows of %s that --soft-delete keeps: %d", table, n))
		}
	}
	return list, nil
}

func (s *state) Rows(ctx context.Context) iter.Seq2[replicate.Row, error] {
	in := func(table string) string { return pgx.Identifier{s.Schema, table}.Sanitize() }
	entry := names(entryColumns, "entry_data", "entry_data_text", "entry_columns", "removed_at", "removal_reason")
	// The columns have the names of the API.
	sql := `
SELECT t.seq, row_to_json(r), NULL, ` + besides("t.entry_data_text", "t.removal_reason") + ` || ` + shownValues("t.entry_columns") + `
FROM ` + in("entries") + ` AS t, LATERAL (
    SELECT ` + listed("t.", entry) + `, coalesce(t.entry_data::text, '') AS entry_data
) AS r
WHERE t.removed_at IS NULL
UNION ALL
SELECT seq, NULL, row_to_json(r), ` + besides("r.removal_reason") + ` FROM ` + in("events") + ` AS r WHERE removed_at IS NULL`
	return func(yield func(replicate.Row, error) bool) {
		rows, err := s.tx.Query(ctx, sql)
		if err == nil {
			defer rows.Close()
			for rows.Next() {
				c := replicate.Row{Change: client.Change{Type: client.EntryChanged}}
				err := rows.Scan(&c.Seq, &c.Entry, &c.Event, &c.Columns)
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
			yield(replicate.Row{}, s.explain("read", err))
		}
	}
}

// besides returns the text of columns that are null in most rows.
func besides(columns ...string) string {
	return `concat(quote_literal(` + strings.Join(columns, `), quote_literal(`) + `))`
}

// shownValues returns the text of values of entry_columns. A key without a value may be missing: its column came later.
func shownValues(of string) string {
	return `coalesce(nullif(jsonb_strip_nulls(` + of + `), '{}')::text, '')`
}

// storedData returns entry_data, and then entry_data_text with entry_columns, as a copy has them.
var storedData = `
SELECT coalesce(j.data::text, ''), ` + besides("CASE WHEN j.data IS NULL THEN u.data END") + ` || ` + shownValues("CASE WHEN j.data IS NULL OR NOT u.fits THEN u.shown::jsonb END") + `
FROM unnest($1::text[], $2::boolean[], $3::boolean[], $4::text[]) WITH ORDINALITY AS u (data, plain, fits, shown, n), LATERAL (
    SELECT CASE WHEN u.plain THEN u.data::jsonb ELSE pg_temp.lectern_to_jsonb(u.data) END AS data OFFSET 0
) AS j
ORDER BY n`

// Stored adds to the columns of the state. An entry whose key has no column there, although the copy has had the entry, differs.
func (s *state) Stored(ctx context.Context, changes []client.Change) ([]replicate.Row, error) {
	list := make([]replicate.Row, len(changes))
	var entries []*replicate.Row
	var texts, shown []any
	var plains, fits, lacks []bool
	for i, c := range changes {
		list[i].Change = c
		if c.Entry == nil {
			continue
		}
		set := s.views[c.Entry.EmbeddableID]
		if set == nil {
			set = s.Options.Columns.Set()
			s.views[c.Entry.EmbeddableID] = set
		}
		added, fit := set.Observe(c.Entry.EntryID, c.Entry.Data)
		row, err := s.entryRow(&c, fit)
		if err != nil {
			return nil, err
		}
		entries, texts, shown = append(entries, &list[i]), append(texts, row[dataAt]), append(shown, row[len(row)-1])
		plains, fits, lacks = append(plains, columns.Plain(c.Entry.Data)), append(fits, fit), append(lacks, added)
	}
	rows, err := s.tx.Query(ctx, storedData, texts, plains, fits, shown)
	if err != nil {
		return nil, s.explain("read", err)
	}
	var data, values string
	_, err = pgx.ForEachRow(rows, []any{&data, &values}, func() error {
		if lacks[0] {
			values = "a column is missing"
		}
		entries[0].Entry.Data, entries[0].Columns = data, values
		entries, lacks = entries[1:], lacks[1:]
		return nil
	})
	return list, s.explain("read", err)
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
