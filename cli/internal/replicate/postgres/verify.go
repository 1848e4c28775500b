package postgres

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/cli/internal/replicate"
	"github.com/lectern-dev/lectern/client"
)

// state is a state of a copy: a transaction of a connection that writes nothing.
type state struct {
	*Destination
	tx pgx.Tx
}

// Look returns the state that the last committed batch left. It is a [replicate.State].
func (d *Destination) Look(ctx context.Context) (_ replicate.State, err error) {
	s := &state{Destination: &Destination{Options: d.Options, config: d.config, sql: d.sql}}
	if s.conn, err = pgx.ConnectConfig(ctx, d.config); err != nil {
		return nil, s.explain("connect", err)
	}
	if err := s.begin(ctx); err != nil {
		_ = s.Destination.Close()
		return nil, s.explain("read", err)
	}
	return s, nil
}

func (s *state) begin(ctx context.Context) (err error) {
	if _, err := s.conn.Exec(ctx, toJSONB); err != nil {
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
	if err := s.checkState(ctx, s.tx); err != nil {
		return err
	}
	return s.checkColumns(found)
}

func (s *state) Position() replicate.Position { return s.at }

// History reports that the tables have one row for each key.
func (*state) History() bool { return false }

func (s *state) Close() error { return s.Destination.Close() }

func (s *state) Rows(ctx context.Context) iter.Seq2[client.Change, error] {
	in := func(table string) string {
		return ` FROM ` + pgx.Identifier{s.Schema, table}.Sanitize() + ` WHERE removed_at IS NULL`
	}
	entries := `SELECT seq, entry_id, group_id, project_id, embeddable_id, contact_id, created_at, updated_at, coalesce(entry_data::text, entry_data_text, '')` + in("entries")
	events := `SELECT seq, ` + listed("", names(stagedEventColumns, "seq")) + in("events")
	return func(yield func(client.Change, error) bool) {
		goOn := s.each(ctx, entries, yield, func(c *client.Change) []any {
			e := &client.Entry{}
			*c = client.Change{Type: client.EntryChanged, Entry: e}
			return []any{&c.Seq, &e.EntryID, &e.GroupID, &e.ProjectID, &e.EmbeddableID, &e.ContactID, &e.CreatedAt, &e.UpdatedAt, &e.Data}
		})
		if !goOn {
			return
		}
		s.each(ctx, events, yield, func(c *client.Change) []any {
			e := &client.ChangedEvent{}
			*c = client.Change{Type: client.EventAdded, Event: e}
			return []any{
				&c.Seq, &e.EventKey, &e.EventID, &e.EntryID, &e.ContactID, &e.ProjectID, &e.GroupID, &e.EmbeddableID, &e.VersionNumber, &e.Timestamp,
				&e.PageID, &e.PageKey, &e.PageIndex, &e.MaxPageID, &e.MaxPageKey, &e.MaxPageIndex, &e.TotalPages, &e.EventType, &e.ViewType,
				&e.CustomEventName, &e.CustomEventProps, &e.URL,
			}
		})
	}
}

// each yields the rows of a query. fields makes a new change and returns where its columns go. each reports whether the
// loop goes on.
func (s *state) each(ctx context.Context, sql string, yield func(client.Change, error) bool, fields func(*client.Change) []any) bool {
	rows, err := s.tx.Query(ctx, sql)
	if err == nil {
		defer rows.Close()
		for rows.Next() {
			var c client.Change
			if err := rows.Scan(fields(&c)...); err != nil {
				yield(c, s.explain("read", err))
				return false
			}
			if !yield(c, nil) {
				return false
			}
		}
		err = rows.Err()
	}
	if err != nil {
		yield(client.Change{}, s.explain("read", err))
	}
	return err == nil
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
			texts, plains = append(texts, c.Entry.Data), append(plains, plain(c.Entry.Data))
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

// Mend removes and adds rows in one transaction.
func (d *Destination) Mend(ctx context.Context, m *replicate.Mending) error {
	err := pgx.BeginFunc(ctx, d.conn, func(tx pgx.Tx) error {
		for _, t := range []struct {
			table, key string
			remove     map[string]bool
		}{{"entries", "entry_id", m.Entries}, {"events", "event_key", m.Events}} {
			sql := `DELETE FROM ` + pgx.Identifier{d.Schema, t.table}.Sanitize() + ` WHERE ` + t.key + ` = ANY($1)`
			if _, err := tx.Exec(ctx, sql, slices.Collect(maps.Keys(t.remove))); err != nil {
				return err
			}
		}
		for changes, err := range m.Put {
			if err != nil {
				return err
			}
			if _, err := d.put(ctx, tx, (&replicate.Batch{Changes: changes}).Newest()); err != nil {
				return err
			}
		}
		return nil
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

// brief calls do with the open connection or one for this call, and the name of the table of the position.
func (d *Destination) brief(ctx context.Context, do func(conn *pgx.Conn, table string) error) (err error) {
	own := Destination{Options: d.Options, config: d.config, conn: d.conn}
	if own.conn == nil || own.conn.IsClosed() {
		if own.conn, err = pgx.ConnectConfig(ctx, d.config); err != nil {
			return own.explain("connect", err)
		}
		defer own.Close()
	}
	return own.explain("read", do(own.conn, pgx.Identifier{d.Schema, stateTable}.Sanitize()))
}
