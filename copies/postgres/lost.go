package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/copies"
)

// lostTable is the table with the rows that only the copy had when its source lost changes. A copy has the table from the
// first loss on.
var lostTable = table{"lectern_lost", []column{
	{"change", "text", " NOT NULL", "entry or event"},
	{"key", "text", bytewise + " NOT NULL", "The entry_id or event_key"},
	{"seq", "bigint", " NOT NULL", "Number of the change that the source lost"},
	{"entry_id", "text", bytewise + " NOT NULL", "Entry"},
	{"record", "text", " NOT NULL", "Record for lectern import, as JSON text"},
}, 3, "Rows that only the copy had when its source lost changes"}

// forImport returns the SQL that makes the record of a row t for an import. but are columns that the record lacks.
func forImport(more string, but ...string) string {
	sql := `jsonb_strip_nulls(to_jsonb(t) - '{seq,removed_at,removal_reason,` + strings.Join(but, ",") + `}'::text[]`
	return sql + more + `)::text`
}

// putAside copies the rows that only the copy has to the table lectern_lost.
func (d *Destination) putAside(ctx context.Context, tx pgx.Tx, loss *copies.Loss) error {
	if len(loss.Aside) == 0 {
		return nil
	}
	if !d.lost {
		for _, sql := range d.createTable(lostTable) {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
	}
	if _, err := tx.Exec(ctx, `SET LOCAL TIME ZONE 'UTC'`); err != nil { // of the times in the records
		return err
	}
	keys := map[client.ChangeType][]string{}
	for key := range loss.Aside {
		keys[key.Type] = append(keys[key.Type], key.ID)
	}
	data := ` || jsonb_build_object('entry_data', coalesce(t.entry_data_text, t.entry_data::text))`
	for _, part := range []struct {
		change             client.ChangeType
		table, key, record string
	}{
		{client.EntryChanged, "entries", "entry_id", forImport(data, "entry_data_text", "entry_columns")},
		{client.EventAdded, "events", "event_key", forImport("", "event_key")},
	} {
		sql := `INSERT INTO ` + d.in(lostTable.name) + ` SELECT $1, t.` + part.key + `, t.seq, t.entry_id, ` + part.record + `
			FROM ` + d.in(part.table) + ` AS t WHERE t.` + part.key + ` = ANY($2) AND t.removed_at IS NULL ON CONFLICT DO NOTHING`
		if _, err := tx.Exec(ctx, sql, string(part.change), keys[part.change]); err != nil {
			return err
		}
	}
	return nil
}

// eraseLost removes the rows of erased entries from the table lectern_lost.
func (d *Destination) eraseLost(ctx context.Context, tx pgx.Tx, removals []client.Change) error {
	erased := slices.DeleteFunc(slices.Clone(removals), func(c client.Change) bool { return c.Removal.Reason != client.Erased })
	if !d.lost || len(erased) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, d.sql.deleteLost, removalColumns(erased)...)
	return err
}

// goBack sets the position of the copy to the change seq. A first load ends there: the feed may have keys again that the load
// has written.
func (d *Destination) goBack(ctx context.Context, tx pgx.Tx, seq int64) error {
	if d.loadTo != nil {
		if _, err := tx.Exec(ctx, d.sql.makeIndexes); err != nil {
			return err
		}
		if err := d.makeKeys(ctx, tx); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `UPDATE `+d.in(stateTable)+` SET cursor = '', seq = $1, load_to = NULL`, seq)
	return err
}
