package postgres

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lectern-dev/lectern/cli/internal/columns"
	"github.com/lectern-dev/lectern/client"
)

// digestEnd matches the end of the names that viewOf makes with a digest.
var digestEnd = regexp.MustCompile(`_[0-9a-f]{12}$`)

// viewOf returns the name of the view of an embeddable's entries: entries_of_ID, with a digest for the rest of a long
// ID. An ID that ends like a digest gets one too, so that no two IDs have one name. No table or index of the copy has
// such a name.
func viewOf(embeddableID string) string {
	const longest = 63
	name := "entries_of_" + embeddableID
	if len(name) <= longest && !digestEnd.MatchString(name) {
		return name
	}
	return strings.ToValidUTF8(name[:min(50, len(name))], "") + fmt.Sprintf("_%.6x", sha256.Sum256([]byte(embeddableID)))
}

const viewsOf = `
SELECT c.relname
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind = 'v'`

// loadViews reads the columns that the views have, and makes views that are missing.
func (d *Destination) loadViews(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, d.sql.readColumns)
	if err != nil {
		return err
	}
	lists := map[string][]columns.Column{}
	var id string
	var c columns.Column
	if _, err := pgx.ForEachRow(rows, []any{&id, &c.Key, &c.Name, &c.Type}, func() error {
		lists[id] = append(lists[id], c)
		return nil
	}); err != nil {
		return err
	}
	rows, err = tx.Query(ctx, viewsOf, d.Schema)
	if err != nil {
		return err
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	d.views = map[string]*columns.Set{}
	for id, list := range lists {
		d.views[id] = d.Columns.Restore(list)
		if !slices.Contains(there, viewOf(id)) {
			if err := d.createView(ctx, tx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// showColumns gives the entries' views the columns that their data needs. After an error, d.views is wrong until
// loadViews.
func (d *Destination) showColumns(ctx context.Context, tx pgx.Tx, entries []client.Change) error {
	before := map[string][]columns.Column{} // of the views that change
	for _, c := range entries {
		id := c.Entry.EmbeddableID
		set := d.views[id]
		if set == nil {
			set = d.Columns.Set()
			d.views[id] = set
			if len(set.Columns()) > 0 {
				before[id] = nil
			}
		}
		was := set.Columns()
		if set.Observe(c.Entry.Data) {
			if _, ok := before[id]; !ok {
				before[id] = was
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		set := d.views[id]
		for i, c := range set.Columns() {
			if i < len(before[id]) && before[id][i] == c {
				continue
			}
			if _, err := tx.Exec(ctx, d.sql.putColumn, id, i, c.Key, c.Name, string(c.Type)); err != nil {
				return err
			}
		}
		// A view can be replaced by one with more columns, and keeps its grants then, but not by one with other types.
		if set.Widened(before[id]) >= 0 {
			if _, err := tx.Exec(ctx, `DROP VIEW `+pgx.Identifier{d.Schema, viewOf(id)}.Sanitize()); err != nil {
				return err
			}
		}
		if err := d.createView(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}

// createView makes the view of an embeddable's entries, or replaces it by one with more columns.
func (d *Destination) createView(ctx context.Context, tx pgx.Tx, embeddableID string) error {
	list := d.views[embeddableID].Columns()
	texts := []string{embeddableID}
	for _, c := range list {
		texts = append(texts, c.Key)
	}
	rows, err := tx.Query(ctx, `SELECT quote_literal(t) FROM unnest($1::text[]) WITH ORDINALITY AS u (t, n) ORDER BY n`, texts)
	if err != nil {
		return err
	}
	quoted, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	id, keys := quoted[0], quoted[1:]
	var sql strings.Builder
	fmt.Fprintf(&sql, "CREATE OR REPLACE VIEW %s AS\nSELECT %s", pgx.Identifier{d.Schema, viewOf(embeddableID)}.Sanitize(),
		listed("t.", names(entryColumns, "removed_at", "removal_reason")))
	for i, c := range list {
		value := "t.entry_data ->> " + keys[i]
		if kind := kindOf(c.Type); kind != "text" {
			// Postgres may evaluate the conditions of a query on the view before that of the view. In entries of
			// other embeddables the value may be of another type.
			value = fmt.Sprintf("CASE WHEN t.embeddable_id = %s THEN (%s)::%s END", id, value, kind)
		}
		fmt.Fprintf(&sql, ",\n    %s AS %s", value, pgx.Identifier{c.Name}.Sanitize())
	}
	fmt.Fprintf(&sql, "\nFROM %s AS t\nWHERE t.embeddable_id = %s AND t.removed_at IS NULL", pgx.Identifier{d.Schema, "entries"}.Sanitize(), id)
	_, err = tx.Exec(ctx, sql.String())
	return err
}

// kindOf returns the type in Postgres of a column.
func kindOf(t columns.Type) string {
	switch t {
	case columns.Double:
		return "float8"
	case columns.Boolean:
		return "boolean"
	case columns.Timestamp:
		return "timestamptz"
	}
	return "text"
}
