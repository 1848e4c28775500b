package postgres

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
)

// state implements [copies.State] by a transaction that writes temporary views alone, so later batches do not change what a
// state shows.
type state struct {
	*Destination
	tx  pgx.Tx
	own []copies.Table // of definitions
}

// Look returns the copy as the last committed batch left it, and the position after that batch. Look uses a new
// connection and takes no lock.
func (d *Destination) Look(ctx context.Context) (_ copies.State, at copies.Position, err error) {
	s := &state{Destination: &Destination{Options: d.Options, config: d.config, shape: d.shape, sql: d.sql}}
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
	if s.tx, err = s.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}); err != nil {
		return err
	}
	found, err := s.relations(ctx, s.tx)
	if err != nil {
		return err
	}
	if found[stateTable] == nil {
		return fmt.Errorf("%s has no copy", s.Destination)
	}
	was, err := s.check(ctx, s.tx)
	if err != nil {
		return err
	}
	if s.unfilled != nil || len(s.lacking(found, was.Revision)) > 0 {
		return copies.UnfilledError(s.Destination)
	}
	if err := s.checkColumns(found); err != nil {
		return err
	}
	if err := s.loadViews(ctx, s.tx); err != nil {
		return err
	}
	if s.own, err = s.definitions(ctx, s.tx); err != nil {
		return err
	}
	_, err = s.tx.Exec(ctx, `SET TRANSACTION READ ONLY`)
	return err
}

// History returns false: the tables have one row for each key.
func (*state) History() bool { return false }

func (s *state) Close() error { return s.Destination.Close() }

// NotCompared returns the parts of the copy that a verification does not compare: rows that are marked as removed. The
// source no longer has the data of such rows.
func (s *state) NotCompared(ctx context.Context) (list []string, err error) {
	for _, table := range []string{"entries", "events"} {
		var n int64
		if err := s.tx.QueryRow(ctx, `SELECT count(*) FROM `+s.in(table)+` WHERE removed_at IS NOT NULL`).Scan(&n); err != nil {
			return nil, s.explain("read", err)
		}
		if n > 0 {
			list = append(list, fmt.Sprintf("rows of %s that --soft-delete keeps: %d", table, n))
		}
	}
	return list, nil
}

func (s *state) Rows(ctx context.Context) iter.Seq2[copies.Row, error] {
	// The columns in the JSON have the names of the API's fields.
	sql := `
SELECT t.seq, row_to_json(r), NULL, ` + besides("t.entry_data_text", "t.removal_reason") + ` || ` + shownValues("t.entry_columns") + `
FROM ` + s.in("entries") + ` AS t, LATERAL (
    SELECT ` + inJSON(s.shape.entries, "entry_data", "entry_data_text", "entry_columns", "removed_at", "removal_reason") + `, coalesce(t.entry_data::text, '') AS entry_data
) AS r
WHERE t.removed_at IS NULL
UNION ALL
SELECT t.seq, NULL, row_to_json(r), ` + besides("t.removal_reason") + `
FROM ` + s.in("events") + ` AS t, LATERAL (SELECT ` + inJSON(s.shape.events, "removed_at", "removal_reason") + `) AS r
WHERE t.removed_at IS NULL`
	return query(ctx, s, sql, func(rows pgx.Rows) (copies.Row, error) {
		c := copies.Row{Change: client.Change{Type: client.EntryChanged}}
		err := rows.Scan(&c.Seq, &c.Entry, &c.Event, &c.Columns)
		if c.Event != nil {
			c.Type = client.EventAdded
		}
		return c, err
	})
}

// query returns an iterator over the rows of a query, each as read returns it. An error ends the iteration as the last
// pair.
func query[T any](ctx context.Context, s *state, sql string, read func(pgx.Rows) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		rows, err := s.tx.Query(ctx, sql)
		if err == nil {
			defer rows.Close()
			for rows.Next() {
				row, err := read(rows)
				if !yield(row, s.explain("read", err)) || err != nil {
					return
				}
			}
			err = rows.Err()
		}
		if err != nil {
			yield(*new(T), s.explain("read", err))
		}
	}
}

// inJSON returns SQL for columns of a row t, except those in but, as the API has them in JSON. A time that the API cannot
// have, such as infinity, is null, so that its row differs from the source's.
func inJSON(all []column, but ...string) string {
	list := make([]string, 0, len(all))
	for _, c := range all {
		if slices.Contains(but, c.name) {
			continue
		}
		name := pgx.Identifier{c.name}.Sanitize()
		value := "t." + name
		if c.kind == "timestamptz" {
			value = "CASE WHEN " + value + " >= '0001-01-01Z' AND " + value + " < '10000-01-01Z' THEN " + value + " END AS " + name
		}
		list = append(list, value)
	}
	return strings.Join(list, ", ")
}

// besides returns SQL that joins the texts of columns that are null in most rows. The result is the empty text if all
// are null.
func besides(columns ...string) string {
	return `concat(quote_literal(` + strings.Join(columns, `), quote_literal(`) + `))`
}

// shownValues returns SQL for the values in expression, which is of entry_columns, as text without nulls. Nulls are left
// out because a row that is older than a column lacks the column's key.
func shownValues(expression string) string {
	return `coalesce(nullif(jsonb_strip_nulls(` + expression + `), '{}')::text, '')`
}

// storedData is a query that makes the stored form of entries: entry_data, and the text that Rows makes of
// entry_data_text and entry_columns.
var storedData = `
SELECT coalesce(j.data::text, ''), ` + besides("CASE WHEN j.data IS NULL THEN u.data END") + ` || ` + shownValues("CASE WHEN j.data IS NULL OR NOT u.fits THEN u.shown::jsonb END") + `
FROM unnest($1::text[], $2::boolean[], $3::boolean[], $4::text[]) WITH ORDINALITY AS u (data, plain, fits, shown, n), LATERAL (
    SELECT CASE WHEN u.plain THEN u.data::jsonb ELSE pg_temp.lectern_to_jsonb(u.data) END AS data OFFSET 0
) AS j
ORDER BY n`

// Stored returns the rows that a copy with all changes would have. Stored adds columns for new keys to the state's
// views. The row of an entry with a new key differs from each row in the copy.
func (s *state) Stored(ctx context.Context, changes []client.Change) ([]copies.Row, error) {
	list := make([]copies.Row, len(changes))
	var entries []*copies.Row
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
			s.views[strings.Clone(c.Entry.EmbeddableID)] = set
		}
		added, fit := set.Observe(c.Entry.EntryID, c.Entry.Data)
		plain := columns.Plain(c.Entry.Data)
		other, err := s.shown(c.Entry, plain, fit)
		if err != nil {
			return nil, err
		}
		var text any
		if !s.Mask.Lacks(dataField) {
			text = c.Entry.Data
		}
		entries, texts, shown = append(entries, &list[i]), append(texts, text), append(shown, other)
		plains, fits, lacks = append(plains, plain), append(fits, fit), append(lacks, added)
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

// Mend removes the differing rows and adds the rows of the source. Mend also replaces the records that have no feed, and makes
// differing indexes anew. All of that is one transaction. Then Mend replaces the views that differ.
func (d *Destination) Mend(ctx context.Context, m *copies.Mending) error {
	keys := map[client.ChangeType][]string{}
	for key := range m.Keys {
		keys[key.Type] = append(keys[key.Type], key.ID)
	}
	err := pgx.BeginFunc(ctx, d.conn, func(tx pgx.Tx) error {
		if m.Loss != nil {
			if err := d.putAside(ctx, tx, m.Loss); err != nil {
				return err
			}
		}
		remove := `WITH removed AS (DELETE FROM ` + d.in("entries") + ` WHERE entry_id = ANY($1)) DELETE FROM ` + d.in("events") + ` WHERE event_key = ANY($2)`
		if _, err := tx.Exec(ctx, remove, keys[client.EntryChanged], keys[client.EventAdded]); err != nil {
			return err
		}
		if err := d.mendIndexes(ctx, tx, keys[indexKind]); err != nil {
			return err
		}
		if err := d.mendViews(ctx, tx, keys[viewKind]); err != nil {
			return err
		}
		if err := d.mendColumns(ctx, tx); err != nil {
			return err
		}
		for changes, err := range m.Put {
			if err != nil {
				return err
			}
			if _, err := d.put(ctx, tx, (&copies.Batch{Changes: changes}).Newest(), d.loadTo != nil); err != nil {
				return err
			}
		}
		// The rows of a repair lack the columns of a newer version, whatever their numbers are.
		state := `UPDATE ` + d.in(stateTable) + ` SET project = $1,
			unfilled_from = CASE WHEN revision > $2 THEN 0 ELSE unfilled_from END, unfilled_cursor = CASE WHEN revision > $2 THEN '' ELSE unfilled_cursor END`
		if _, err := tx.Exec(ctx, state, m.Digest, d.shape.Number); err != nil {
			return err
		}
		if m.Loss != nil && m.Loss.Last {
			if err := d.goBack(ctx, tx, m.Loss.After); err != nil {
				return err
			}
		}
		return d.putProject(ctx, tx, m.Project)
	})
	if err != nil {
		return d.explain("repair", err)
	}
	if m.Loss != nil && len(m.Loss.Aside) > 0 {
		d.Note(m.Loss.Note("the table "+lostTable.name, d.Mask))
	}
	d.showViews(ctx)
	return nil
}

// SetVerified stores the result of a verification in the table lectern_sync, by a new connection.
func (d *Destination) SetVerified(ctx context.Context, v copies.Verified) error {
	return d.brief(ctx, func(conn *pgx.Conn, table string) error {
		_, err := conn.Exec(ctx, `UPDATE `+table+` SET verified_at = $1, differences = $2`, v.At, v.Differences)
		return err
	})
}

// Status returns the source and position of the copy and the last stored verification, from the table lectern_sync.
// Status uses a new connection and takes no lock.
func (d *Destination) Status(ctx context.Context) (s copies.Status, err error) {
	err = d.brief(ctx, func(conn *pgx.Conn, table string) error {
		return conn.QueryRow(ctx, `SELECT project_id, cursor, seq, coalesce(verified_at, '0001-01-01Z'), coalesce(differences, 0) FROM `+table).
			Scan(&s.ProjectID, &s.Position.Cursor, &s.Position.Seq, &s.Verified.At, &s.Verified.Differences)
	})
	s.Verified.At = s.Verified.At.UTC()
	return s, err
}

// brief calls do with a new connection and the quoted name of the table lectern_sync, and then closes the connection.
func (d *Destination) brief(ctx context.Context, do func(conn *pgx.Conn, table string) error) (err error) {
	own := Destination{Options: d.Options, config: d.config}
	if err := own.connect(ctx); err != nil {
		return err
	}
	defer own.Close()
	return own.explain("read", do(own.conn, d.in(stateTable)))
}
